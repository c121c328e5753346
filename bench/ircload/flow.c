#include "ircload.h"

#include <stdio.h>
#include <string.h>

/* A text is "~", the number of the flow, the sequence number in it and the time of sending, then padding. */
#define FLOW_DIGITS 6
#define SEQUENCE_DIGITS 8
#define TIME_DIGITS 16
#define HEADER (1 + FLOW_DIGITS + SEQUENCE_DIGITS + TIME_DIGITS)

flow *flows;
int flow_count;

static char *put_hex(char *to, uint64_t value, int digits) {
    for (int i = digits - 1; i >= 0; i--, value >>= 4) to[i] = "0123456789abcdef"[value & 15];
    return to + digits;
}

static uint64_t take_hex(const char **from, int digits) {
    uint64_t value = 0;
    for (int i = 0; i < digits; i++) {
        char digit = *(*from)++;
        value = value << 4 | (uint64_t)((digit & 15) + (digit > '9' ? 9 : 0));
    }
    return value;
}

static char *put_text(char *to, const char *text) {
    size_t size = strlen(text);
    memcpy(to, text, size);
    return to + size;
}

void flows_allocate(int count) {
    flow_count = count;
    flows = allocate(sizeof *flows * (size_t)count);
}

static void flow_start(flow *f, int sender, uint32_t total, uint32_t receivers, size_t places) {
    f->sender = sender;
    f->total = total;
    f->receivers = receivers;
    f->expected = allocate(sizeof *f->expected * places);
    f->missing = allocate(sizeof *f->missing * total);
}

void flow_to_channel(flow *f, int sender, int number, uint32_t total) {
    int size = channels[number].size;
    flow_start(f, sender, total, (uint32_t)size - 1, (size_t)size);
    f->channel = number;
    f->recipient = -1;
    snprintf(f->target, sizeof f->target, "#ld%d", number);
}

void flow_to_client(flow *f, int sender, int recipient, uint32_t total) {
    flow_start(f, sender, total, 1, 1);
    f->channel = -1;
    f->recipient = recipient;
    snprintf(f->target, sizeof f->target, "%s", clients[recipient].nick);
}

void flow_send(flow *f) {
    char line[4300], *end = line;
    end = put_text(end, "PRIVMSG ");
    end = put_text(end, f->target);
    end = put_text(end, " :~");
    end = put_hex(end, (uint64_t)(f - flows), FLOW_DIGITS);
    end = put_hex(end, f->sent, SEQUENCE_DIGITS);
    end = put_hex(end, now(), TIME_DIGITS);
    if (opt.body_bytes > HEADER) {
        memset(end, 'x', (size_t)(opt.body_bytes - HEADER));
        end += opt.body_bytes - HEADER;
    }
    end = put_text(end, "\r\n");
    f->missing[f->sent++] = (uint16_t)f->receivers;
    f->outstanding++;
    counts.sent++;
    client_put(&clients[f->sender], line, (uint32_t)(end - line));
}

/* Where the ledger keeps the sequence number that this client must get next, or null when it should get none. */
static uint32_t *place_in(flow *f, const client *c) {
    if (f->channel < 0) return c->id == f->recipient ? f->expected : NULL;
    uint16_t place = channels[f->channel].index[c->id];
    return place == NOT_A_MEMBER ? NULL : &f->expected[place];
}

static void delivered(flow *f, uint32_t sequence, uint64_t sent_at, uint64_t received_at) {
    counts.delivered++;
    counts.last_delivery_at = received_at;
    histogram_add(&counts.latency, received_at - sent_at);
    if (f->missing[sequence] && --f->missing[sequence] == 0) f->outstanding--;
}

static void misplaced(const char *what) {
    counts.misplaced++;
    note_error(counts.first_error, what, (int)strlen(what));
}

/* Books one received text: once, in order, and to somebody who should have it, or it is counted as a fault. */
void flow_received(client *c, const char *text, int size, uint64_t received_at) {
    if (size < HEADER) {
        misplaced("text cut short");
        return;
    }
    const char *at = text + 1;
    uint64_t number = take_hex(&at, FLOW_DIGITS);
    uint32_t sequence = (uint32_t)take_hex(&at, SEQUENCE_DIGITS);
    uint64_t sent_at = take_hex(&at, TIME_DIGITS);
    if (number >= (uint64_t)flow_count || sequence >= flows[number].sent) {
        misplaced("text nobody sent");
        return;
    }
    flow *f = &flows[number];
    uint32_t *next = place_in(f, c);
    if (!next || c->id == f->sender) {
        misplaced(next ? "echo to sender" : "delivered to the wrong client");
        return;
    }
    if (sequence < *next) {
        counts.duplicates++;
        return;
    }
    if (sequence > *next) {
        counts.gaps++;
        note_error(counts.first_error, text, size > 40 ? 40 : size);
    }
    *next = sequence + 1;
    delivered(f, sequence, sent_at, received_at);
}
