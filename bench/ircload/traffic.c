#include "ircload.h"

/* Long enough to cost nothing, short enough that the deadline is seen. */
#define PATIENT (20 * NS_PER_MS)

static uint64_t due(const run *r, uint64_t total) {
    uint64_t count = (uint64_t)((double)(now() - r->started.at) / 1e9 * opt.rate) + 1;
    return count < total ? count : total;
}

/* ---- fanout and dm: each flow keeps its own window ---------------------------------------- */

static bool fill_windows(void) {
    bool all_sent = true;
    for (flow *f = flows; f < flows + flow_count; f++) {
        while (f->sent < f->total && f->outstanding < (uint32_t)opt.window) flow_send(f);
        if (f->sent < f->total) all_sent = false;
    }
    return all_sent;
}

static void run_windows(void) {
    bool all_sent = false;
    while (counts.delivered < counts.expected && going_well()) {
        if (!all_sent) all_sent = fill_windows();
        pump(PATIENT);
    }
}

static void run_paced(const run *r, uint64_t total) {
    uint64_t sent = 0;
    while (counts.delivered < counts.expected && going_well()) {
        for (uint64_t until = due(r, total); sent < until; sent++) flow_send(&flows[sent % (uint64_t)flow_count]);
        pump(NS_PER_MS / 10);
    }
}

static void run_flows(run *r, uint64_t total) {
    r->started = read_meters();
    counts.last_delivery_at = r->started.at;
    if (opt.rate > 0) run_paced(r, total);
    else run_windows();
}

static void fanout(run *r) {
    uint64_t total = (uint64_t)opt.senders * (uint64_t)opt.messages;
    flows_allocate(opt.senders);
    for (int i = 0; i < opt.senders; i++) /* senders spread over the order of joining */
        flow_to_channel(&flows[i], (int)((long)i * opt.readers / opt.senders), 0, (uint32_t)opt.messages);
    counts.expected = total * (uint64_t)(opt.readers - 1);
    run_flows(r, total);
}

static void direct(run *r) {
    uint64_t total = (uint64_t)opt.pairs * (uint64_t)opt.messages;
    flows_allocate(opt.pairs);
    for (int i = 0; i < opt.pairs; i++) flow_to_client(&flows[i], 2 * i, 2 * i + 1, (uint32_t)opt.messages);
    counts.expected = total;
    run_flows(r, total);
}

/* ---- pingpong: one message in the air; the latency is that of the round trip --------------- */

static void pingpong(run *r) {
    static histogram round_trips;
    bool returning = false;
    flows_allocate(2);
    flow_to_client(&flows[0], 0, 1, (uint32_t)opt.messages);
    flow_to_client(&flows[1], 1, 0, (uint32_t)opt.messages);
    counts.expected = 2 * (uint64_t)opt.messages;
    r->started = read_meters();
    uint64_t sent_at = now();
    flow_send(&flows[0]);
    while (counts.delivered < counts.expected && going_well()) {
        uint64_t before = counts.delivered;
        pump(PATIENT);
        if (counts.delivered == before) continue;
        returning = !returning;
        if (returning) {
            flow_send(&flows[1]);
            continue;
        }
        histogram_add(&round_trips, counts.last_delivery_at - sent_at);
        sent_at = now();
        if (flows[0].sent < flows[0].total) flow_send(&flows[0]);
    }
    counts.latency = round_trips;
}

/* ---- channels: one window over all rooms, senders and rooms in random order ---------------- */

static uint32_t *random_order(uint32_t *per_flow) {
    uint32_t *order = allocate(sizeof *order * (size_t)opt.messages);
    for (int i = 0; i < opt.messages; i++) {
        order[i] = (uint32_t)(next_random() % (uint64_t)flow_count);
        per_flow[order[i]]++;
    }
    return order;
}

static void many_channels(run *r) {
    int size = opt.channel_members;
    uint64_t total = (uint64_t)opt.messages, copies = (uint64_t)size - 1, sent = 0;
    flows_allocate(opt.channels * size); /* one per member and room */
    uint32_t *per_flow = allocate(sizeof *per_flow * (size_t)flow_count);
    uint32_t *order = random_order(per_flow);
    for (int i = 0; i < flow_count; i++)
        flow_to_channel(&flows[i], channels[i / size].members[i % size], i / size, per_flow[i]);
    counts.expected = total * copies;
    r->started = read_meters();
    counts.last_delivery_at = r->started.at;
    while (counts.delivered < counts.expected && going_well()) {
        uint64_t until = opt.rate > 0 ? due(r, total) : total;
        while (sent < until && sent * copies < counts.delivered + (uint64_t)opt.window * copies)
            flow_send(&flows[order[sent++]]);
        pump(opt.rate > 0 ? NS_PER_MS / 5 : PATIENT);
    }
}

void traffic_run(run *r) {
    switch (opt.scenario) {
    case FANOUT: fanout(r); break;
    case DM: direct(r); break;
    case PINGPONG: pingpong(r); break;
    case CHANNELS: many_channels(r); break;
    case STORM:
    case IDLE: break; /* registering and joining is all there is */
    }
}
