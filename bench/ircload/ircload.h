/* ircload: a load generator for any IRC server. One thread, epoll, one JSON line as the result.
 *
 *   options.c    the command line
 *   layout.c     which client is a member of which channel
 *   client.c     connections: buffers, epoll, registration
 *   lines.c      what a received line means
 *   flow.c       sender-to-target streams and the ledger that verifies every delivery
 *   traffic.c    the sending patterns of the scenarios
 *   measure.c    clock, random numbers, histogram, CPU and memory of the server
 *   report.c     the JSON line
 *   main.c       the phases of a run
 */
#ifndef IRCLOAD_H
#define IRCLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- options.c ---------------------------------------------------------------------------- */

typedef enum { FANOUT, DM, PINGPONG, STORM, CHANNELS, IDLE } scenario;

typedef struct {
    const char *host, *nick_prefix, *password, *label, *scenario_name;
    scenario scenario;
    int port, server_pid;
    int readers;         /* -n: clients that read everything they are sent */
    int stalled;         /* -X: further members of the fan-out channel that stop reading */
    int senders;         /* -S */
    int pairs;           /* -D: dm */
    int messages;        /* -m: per sender; in all for `channels` */
    int body_bytes;      /* -b: length of the text */
    int window;          /* -w: messages per sender not yet delivered to everybody */
    double rate;         /* -r: messages per second over all senders; 0 = as the window allows */
    int channels;        /* -C */
    int channel_members; /* -k: members of each channel of `channels` */
    int room_size;       /* -J: members per channel of `storm` and `idle` */
    int idle_seconds;    /* -I */
    int concurrency;     /* -c: connections, then joins, in flight at once */
    bool rotate_source;  /* -B: spread clients over 127.0.0.2 and up */
    double timeout;      /* -T: seconds for the whole run */
    uint64_t seed;       /* -Z */
} options;

extern options opt;

void options_parse(int argc, char **argv);
int client_total(void); /* readers and stalled clients */

/* ---- measure.c ---------------------------------------------------------------------------- */

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

/* Log-linear: 64 buckets per power of two, so a quantile is exact to 1.6 %. Values in ns. */
#define HISTOGRAM_BUCKETS (64 * 48)

typedef struct {
    uint64_t buckets[HISTOGRAM_BUCKETS];
    uint64_t count, max;
    double sum;
} histogram;

uint64_t now(void);
uint64_t next_random(void);
void histogram_add(histogram *h, uint64_t ns);
double histogram_quantile_us(const histogram *h, double q);
double server_cpu(void);   /* user and system seconds; 0 without -p */
long server_rss_kb(void);  /* resident KiB; 0 without -p */
double own_cpu(void);
void *allocate(size_t size); /* zeroed; ends the program when there is no memory */
void *reallocate(void *old, size_t size);
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- client.c ----------------------------------------------------------------------------- */

typedef enum { NEW, CONNECTING, REGISTERING, UP, DEAD } client_state;

typedef struct {
    int fd, id;
    client_state state;
    bool starting;  /* counted in tally.starting */
    bool dirty;     /* has output to flush */
    bool want_out;  /* epoll watches for EPOLLOUT */
    bool stalled;   /* was told to stop reading: the server may drop it */
    bool paused;    /* is not reading */
    bool synced;    /* answered the last sync */
    int joins_left;
    uint64_t connected_at;
    char nick[48];
    char *partial; /* an unfinished received line */
    uint32_t partial_size, partial_room;
    char *out;
    uint32_t out_size, out_sent, out_room;
    int *channels, channel_count;
} client;

extern client *clients; /* the readers first, then the clients that will stall */

void clients_create(void);
void client_connect(client *c);
void client_put(client *c, const char *bytes, uint32_t size);
void client_putf(client *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
void client_drop(client *c, const char *why);
void client_stop_reading(client *c);
void client_resume_reading(client *c);
void pump(uint64_t wait_ns); /* flush what is queued, wait for events, handle them */

/* ---- lines.c ------------------------------------------------------------------------------ */

void handle_line(client *c, const char *line, const char *end, uint64_t received_at);

/* ---- layout.c ----------------------------------------------------------------------------- */

#define NOT_A_MEMBER 0xffff

typedef struct {
    int *members, size; /* members is null where a channel carries no traffic */
    uint16_t *index;    /* client id -> place among the members, or NOT_A_MEMBER */
} channel;

extern channel *channels;

void layout_create(void);
int joiner_count(void);

/* ---- flow.c ------------------------------------------------------------------------------- */

typedef struct {
    int sender;
    int channel;           /* -1 for a direct message */
    int recipient;         /* of a direct message */
    uint32_t total, sent;  /* messages */
    uint32_t outstanding;  /* sent, not yet delivered to everybody */
    uint32_t receivers;
    uint32_t *expected;    /* per receiver: the next sequence number */
    uint16_t *missing;     /* per message: receivers it has not reached */
    char target[64];
} flow;

extern flow *flows;
extern int flow_count;

void flows_allocate(int count);
void flow_to_channel(flow *f, int sender, int channel, uint32_t total);
void flow_to_client(flow *f, int sender, int recipient, uint32_t total);
void flow_send(flow *f);
void flow_received(client *c, const char *text, int size, uint64_t received_at);

/* ---- main.c and report.c ------------------------------------------------------------------ */

typedef struct {
    uint64_t expected, delivered, sent;
    uint64_t duplicates, gaps, misplaced, dead, errors, other_privmsg;
    uint64_t lines, bytes;
    int up, joined, synced, starting;
    int stalled_dropped;
    uint64_t last_delivery_at;
    histogram latency, registration;
    char first_error[200], stalled_error[200];
} tally;

extern tally counts;
extern uint64_t deadline;

typedef struct {
    double cpu, generator_cpu;
    uint64_t at;
} reading;

typedef struct {
    bool ok;
    double register_s, register_cpu, join_s, join_sync_s, join_cpu;
    uint64_t setup_lines, setup_bytes;
    long rss_start, rss_registered, rss_joined, rss_end;
    reading started, ended;
    double idle_cpu;
    uint64_t idle_bytes;
} run;

reading read_meters(void);
bool going_well(void); /* false when the run can no longer succeed */
bool expired(void);
void note_error(char *where, const char *text, int size); /* keeps the first one, fit for JSON */
void traffic_run(run *r);
void report_print(const run *r);

#endif
