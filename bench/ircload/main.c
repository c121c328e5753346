#include "ircload.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define PATIENT (20 * NS_PER_MS)
#define STALLED_PATIENCE (5 * NS_PER_S)

tally counts;
uint64_t deadline;

bool expired(void) { return now() > deadline; }

/* A lost message never comes and a refused one was never relayed: no use waiting for the rest. */
bool going_well(void) { return !counts.dead && !counts.gaps && !counts.errors && !expired(); }

reading read_meters(void) { return (reading){.cpu = server_cpu(), .generator_cpu = own_cpu(), .at = now()}; }

void note_error(char *where, const char *text, int size) {
    int length = 0;
    if (where[0]) return;
    for (; length < size && length < 180; length++) {
        char c = text[length];
        where[length] = c == '"' || c == '\\' || (unsigned char)c < 32 ? '\'' : c;
    }
    where[length] = 0;
}

static double seconds_since(uint64_t start) { return (double)(now() - start) / 1e9; }

static void raise_file_limit(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < (rlim_t)client_total() + 16)
        fail("the limit of open files (%lu) is too low", (unsigned long)limit.rlim_cur);
}

/* PING and PONG with every reader: whatever the server had queued before it has been seen. */
static bool sync_readers(void) {
    int live = 0;
    uint64_t dead_before = counts.dead;
    counts.synced = 0;
    for (client *c = clients; c < clients + client_total(); c++) {
        if (c->state != UP || c->stalled) continue;
        c->synced = false;
        client_putf(c, "PING ldsync\r\n");
        live++;
    }
    while (counts.synced < live - (int)(counts.dead - dead_before) && !expired()) pump(PATIENT);
    return counts.synced == live;
}

static void register_everybody(run *r) {
    int total = client_total(), started = 0;
    r->rss_start = server_rss_kb();
    double cpu = server_cpu();
    uint64_t start = now();
    while (counts.up + (int)counts.dead < total && !expired()) {
        while (started < total && counts.starting < opt.concurrency) client_connect(&clients[started++]);
        pump(PATIENT);
    }
    r->register_s = seconds_since(start);
    r->register_cpu = server_cpu() - cpu;
    sync_readers();
    r->rss_registered = server_rss_kb();
}

static void join_channels(client *c) {
    for (int i = 0; i < c->channel_count; i++) client_putf(c, "JOIN #ld%d\r\n", c->channels[i]);
}

static bool join_everybody(run *r) {
    int joiners = joiner_count(), asked = 0;
    double cpu = server_cpu();
    uint64_t start = now();
    while (counts.joined < joiners && !counts.dead && !expired()) {
        while (asked < client_total() && asked - counts.joined < opt.concurrency) {
            if (clients[asked].state == UP) join_channels(&clients[asked]);
            asked++;
        }
        pump(PATIENT);
    }
    r->join_s = seconds_since(start);
    bool synced = sync_readers();
    r->join_sync_s = seconds_since(start);
    r->join_cpu = server_cpu() - cpu;
    r->rss_joined = server_rss_kb();
    return synced && counts.joined == joiners;
}

static void stay_idle(run *r) {
    uint64_t until = now() + (uint64_t)opt.idle_seconds * NS_PER_S, bytes = counts.bytes;
    double cpu = server_cpu();
    while (now() < until && !expired()) pump(100 * NS_PER_MS);
    r->idle_cpu = server_cpu() - cpu;
    r->idle_bytes = counts.bytes - bytes;
}

/* A client that does not read cannot see that it was dropped: let it look, once nothing is measured any more. */
static void look_after_stalled(void) {
    uint64_t until = now() + STALLED_PATIENCE;
    counts.synced = 0;
    for (client *c = clients + opt.readers; c < clients + client_total(); c++) {
        if (c->state == DEAD) continue;
        c->synced = false;
        client_resume_reading(c);
        client_putf(c, "PING ldsync\r\n");
    }
    while (counts.synced + counts.stalled_dropped < opt.stalled && now() < until) pump(PATIENT);
}

static void measure_traffic(run *r) {
    for (client *c = clients + opt.readers; c < clients + client_total(); c++) client_stop_reading(c);
    r->started = read_meters();
    counts.last_delivery_at = r->started.at;
    traffic_run(r);
    r->ended = read_meters();
    if (counts.last_delivery_at > r->started.at) r->ended.at = counts.last_delivery_at;
}

static bool verified(void) {
    return counts.delivered == counts.expected && !counts.duplicates && !counts.gaps && !counts.misplaced &&
           !counts.dead && !counts.errors;
}

int main(int argc, char **argv) {
    run r = {0};
    options_parse(argc, argv);
    raise_file_limit();
    clients_create();
    layout_create();
    deadline = now() + (uint64_t)(opt.timeout * 1e9);
    register_everybody(&r);
    bool ready = join_everybody(&r) && counts.up == client_total();
    r.setup_lines = counts.lines;
    r.setup_bytes = counts.bytes;
    if (ready) {
        measure_traffic(&r);
        if (opt.scenario == IDLE) stay_idle(&r);
        r.rss_end = server_rss_kb();
        sync_readers(); /* a late duplicate would come before the answer */
        look_after_stalled();
    }
    r.ok = ready && verified();
    report_print(&r);
    return r.ok ? 0 : 1;
}
