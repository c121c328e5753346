#define _GNU_SOURCE
#include "ircload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BUFFER (4u << 20)
#define LINE_ROOM 65536u
#define EVENTS_AT_ONCE 1024

client *clients;

static int epoll;
static char *read_buffer;
static int *dirty, dirty_count; /* ids of clients with output to flush */

void clients_create(void) {
    size_t total = (size_t)client_total();
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) fail("epoll: %s", strerror(errno));
    read_buffer = allocate(READ_BUFFER);
    clients = allocate(sizeof *clients * total);
    dirty = allocate(sizeof *dirty * total);
    for (int id = 0; id < (int)total; id++) {
        clients[id].id = id;
        clients[id].fd = -1;
        snprintf(clients[id].nick, sizeof clients[id].nick, "%sc%05d", opt.nick_prefix, id);
    }
}

/* ---- sending ------------------------------------------------------------------------------ */

void client_put(client *c, const char *bytes, uint32_t size) {
    if (c->out_size + size > c->out_room) {
        c->out_room = (c->out_size + size) * 2 + 256;
        c->out = reallocate(c->out, c->out_room);
    }
    memcpy(c->out + c->out_size, bytes, size);
    c->out_size += size;
    if (!c->dirty) {
        c->dirty = true;
        dirty[dirty_count++] = c->id;
    }
}

void client_putf(client *c, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size < 0 || size >= (int)sizeof text) fail("a line of %d bytes", size);
    client_put(c, text, (uint32_t)size);
}

static void watch(client *c, bool out) {
    struct epoll_event event = {.data.u32 = (uint32_t)c->id};
    event.events = (c->paused ? 0 : EPOLLIN) | (out ? EPOLLOUT : 0);
    c->want_out = out;
    epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
}

static void flush(client *c) {
    if (c->state == CONNECTING) return; /* done when the connection stands */
    if (c->state == DEAD || c->state == NEW) {
        c->out_size = c->out_sent = 0;
        return;
    }
    while (c->out_sent < c->out_size) {
        ssize_t size = send(c->fd, c->out + c->out_sent, c->out_size - c->out_sent, MSG_NOSIGNAL);
        if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (!c->want_out) watch(c, true);
            return;
        }
        if (size < 0) {
            client_drop(c, "send error");
            return;
        }
        c->out_sent += (uint32_t)size;
    }
    c->out_sent = c->out_size = 0;
    if (c->want_out) watch(c, false);
}

static void flush_dirty(void) {
    int count = dirty_count;
    dirty_count = 0;
    for (int i = 0; i < count; i++) {
        client *c = &clients[dirty[i]];
        c->dirty = false;
        flush(c);
    }
}

/* ---- life of a connection ----------------------------------------------------------------- */

/* On loopback the kernel would hold megabytes for a client that does not read, and the server would never notice.
 * A small window and the segment size of a real network leave it what a distant client leaves it. */
static void shrink_buffers(int fd) {
    int window = 4096, segment = 1460;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
    setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
}

static void bind_source(client *c) {
    int one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(0x7f000002u + (uint32_t)c->id % 200);
    setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (bind(c->fd, (struct sockaddr *)&address, sizeof address)) fail("bind: %s", strerror(errno));
}

static void open_socket(client *c) {
    int one = 1;
    struct linger reset = {1, 0}; /* thousands of connections per run: none is to stay in TIME_WAIT */
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) fail("socket: %s", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (c->id >= opt.readers) shrink_buffers(c->fd);
    if (opt.rotate_source) bind_source(c);
}

void client_connect(client *c) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)opt.port)};
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.u32 = (uint32_t)c->id};
    if (inet_pton(AF_INET, opt.host, &address.sin_addr) != 1) fail("not an IPv4 address: %s", opt.host);
    open_socket(c);
    c->connected_at = now();
    c->state = CONNECTING;
    c->starting = true;
    counts.starting++;
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS) {
        client_drop(c, strerror(errno));
        return;
    }
    c->want_out = true;
    epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
    if (opt.password) client_putf(c, "PASS %s\r\n", opt.password);
    client_putf(c, "NICK %s\r\nUSER u%d 0 * :load %d\r\n", c->nick, c->id, c->id);
}

void client_drop(client *c, const char *why) {
    if (c->state == DEAD) return;
    if (c->starting) counts.starting--;
    c->starting = false;
    c->state = DEAD;
    if (c->stalled) {
        counts.stalled_dropped++;
    } else {
        counts.dead++;
        note_error(counts.first_error, why, (int)strlen(why));
    }
    epoll_ctl(epoll, EPOLL_CTL_DEL, c->fd, NULL);
    close(c->fd);
    c->fd = -1;
}

void client_stop_reading(client *c) {
    c->stalled = c->paused = true;
    if (c->state != DEAD) watch(c, c->want_out);
}

void client_resume_reading(client *c) {
    c->paused = false;
    if (c->state != DEAD) watch(c, c->want_out);
}

/* ---- receiving ---------------------------------------------------------------------------- */

static void keep_partial(client *c, const char *rest, uint32_t size) {
    c->partial_size = size;
    if (!size) return;
    if (size >= READ_BUFFER - LINE_ROOM) {
        client_drop(c, "line too long");
        return;
    }
    if (size > c->partial_room) {
        c->partial_room = size + 1024;
        c->partial = reallocate(c->partial, c->partial_room);
    }
    memcpy(c->partial, rest, size);
}

static void receive(client *c) {
    uint32_t held = c->partial_size;
    if (held) memcpy(read_buffer, c->partial, held);
    ssize_t size = recv(c->fd, read_buffer + held, READ_BUFFER - held, 0);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (size <= 0) {
        client_drop(c, size ? strerror(errno) : "server closed connection");
        return;
    }
    uint64_t received_at = now();
    counts.bytes += (uint64_t)size;
    const char *line = read_buffer, *scan = read_buffer + held, *end = scan + size, *newline;
    while ((newline = memchr(scan, '\n', (size_t)(end - scan)))) {
        handle_line(c, line, newline, received_at);
        line = scan = newline + 1;
        if (c->state == DEAD) return;
    }
    keep_partial(c, line, (uint32_t)(end - line));
}

static void connected(client *c) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) client_drop(c, strerror(error));
    else c->state = REGISTERING;
}

static void handle_event(client *c, uint32_t events) {
    if (c->state == CONNECTING && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) connected(c);
    if (c->state != DEAD && (events & EPOLLOUT)) flush(c);
    if (c->state != DEAD && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) receive(c);
}

void pump(uint64_t wait_ns) {
    static struct epoll_event events[EVENTS_AT_ONCE];
    struct timespec wait = {(time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S)};
    flush_dirty();
    int count = epoll_pwait2(epoll, events, EVENTS_AT_ONCE, &wait, NULL);
    if (count < 0 && errno != EINTR) fail("epoll: %s", strerror(errno));
    for (int i = 0; i < count; i++) {
        client *c = &clients[events[i].data.u32];
        if (c->state != DEAD && c->state != NEW) handle_event(c, events[i].events);
    }
}
