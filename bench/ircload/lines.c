#define _GNU_SOURCE
#include "ircload.h"

#include <string.h>

enum {
    RPL_WELCOME = 1,
    RPL_ENDOFNAMES = 366,
    FIRST_ERROR = 400,
    ERR_NOMOTD = 422,
    ERR_ERRONEUSNICKNAME = 432,
    ERR_NICKNAMEINUSE = 433,
    ERR_PASSWDMISMATCH = 464,
    ERR_YOUREBANNEDCREEP = 465,
};

/* The next word of the line, or null when the line ends with this one. */
static const char *after_word(const char *word, const char *end) {
    const char *space = memchr(word, ' ', (size_t)(end - word));
    while (space && space < end && *space == ' ') space++;
    return space;
}

static bool begins(const char *text, const char *end, const char *word) {
    size_t size = strlen(word);
    return (size_t)(end - text) >= size && !memcmp(text, word, size);
}

static void welcomed(client *c, uint64_t received_at) {
    if (c->state != REGISTERING) return;
    c->state = UP;
    counts.up++;
    histogram_add(&counts.registration, received_at - c->connected_at);
    if (c->starting) counts.starting--;
    c->starting = false;
}

static bool is_numeric(const char *word, const char *end) {
    return end - word > 4 && *word >= '0' && *word <= '9' && word[3] == ' ';
}

static void handle_numeric(client *c, int code, const char *line, const char *end, uint64_t received_at) {
    if (code == RPL_WELCOME) {
        welcomed(c, received_at);
    } else if (code == RPL_ENDOFNAMES) {
        if (c->joins_left > 0 && --c->joins_left == 0) counts.joined++;
    } else if (code >= FIRST_ERROR && code != ERR_NOMOTD) {
        counts.errors++;
        note_error(counts.first_error, line, (int)(end - line));
        if (code == ERR_ERRONEUSNICKNAME || code == ERR_NICKNAMEINUSE || code == ERR_PASSWDMISMATCH ||
            code == ERR_YOUREBANNEDCREEP)
            client_drop(c, "registration refused");
    }
}

static void handle_privmsg(client *c, const char *target, const char *end, uint64_t received_at) {
    const char *text = memchr(target, ' ', (size_t)(end - target));
    if (!text) return;
    text++;
    if (text < end && *text == ':') text++;
    if (text < end && *text == '~') flow_received(c, text, (int)(end - text), received_at);
    else counts.other_privmsg++;
}

static void answer_ping(client *c, const char *token, const char *end) {
    while (token < end && *token == ' ') token++;
    client_putf(c, "PONG %.*s\r\n", (int)(end - token > 500 ? 500 : end - token), token);
}

static void handle_pong(client *c, const char *line, const char *end) {
    if (c->synced || !memmem(line, (size_t)(end - line), "ldsync", 6)) return;
    c->synced = true;
    counts.synced++;
}

/* What a client that stopped reading finds when it looks again: did it survive, and if not, why? */
static void handle_stalled(client *c, const char *word, const char *end) {
    if (begins(word, end, "PONG")) handle_pong(c, word, end);
    else if (begins(word, end, "ERROR")) note_error(counts.stalled_error, word, (int)(end - word));
}

void handle_line(client *c, const char *line, const char *end, uint64_t received_at) {
    const char *word = line;
    counts.lines++;
    if (end > line && end[-1] == '\r') end--;
    if (word < end && *word == '@') word = after_word(word, end);
    if (word && word < end && *word == ':') word = after_word(word, end);
    if (!word || end - word < 3) return;
    if (c->stalled) handle_stalled(c, word, end);
    else if (begins(word, end, "PRIVMSG ")) handle_privmsg(c, word + 8, end, received_at);
    else if (is_numeric(word, end))
        handle_numeric(c, (word[0] - '0') * 100 + (word[1] - '0') * 10 + word[2] - '0', line, end, received_at);
    else if (begins(word, end, "PING")) answer_ping(c, word + 4, end);
    else if (begins(word, end, "PONG")) handle_pong(c, word, end);
    else if (begins(word, end, "ERROR")) {
        counts.errors++;
        note_error(counts.first_error, line, (int)(end - line));
    }
}
