#include "ircload.h"

#include <string.h>

channel *channels;

static void add_channel(client *c, int number) {
    c->channels = reallocate(c->channels, sizeof(int) * (size_t)(c->channel_count + 1));
    c->channels[c->channel_count++] = number;
    c->joins_left = c->channel_count;
}

static void add_member(int number, int id) {
    channel *ch = &channels[number];
    ch->index[id] = (uint16_t)ch->size;
    ch->members[ch->size++] = id;
    add_channel(&clients[id], number);
}

static void channels_allocate(int count, int room) {
    opt.channels = count;
    channels = allocate(sizeof *channels * (size_t)count);
    for (int i = 0; i < count && room; i++) {
        channels[i].members = allocate(sizeof(int) * (size_t)room);
        channels[i].index = allocate(sizeof(uint16_t) * (size_t)opt.readers);
        memset(channels[i].index, 0xff, sizeof(uint16_t) * (size_t)opt.readers);
    }
}

/* Everybody in one channel; the clients that will stall join it too, but no delivery to them is expected. */
static void one_channel(void) {
    channels_allocate(1, opt.readers);
    for (int id = 0; id < opt.readers; id++) add_member(0, id);
    for (int id = opt.readers; id < client_total(); id++) add_channel(&clients[id], 0);
}

/* Rooms of -J clients each, filled one after the other: to be joined, not to be spoken in. */
static void separate_rooms(void) {
    channels_allocate((opt.readers + opt.room_size - 1) / opt.room_size, 0);
    for (int id = 0; id < opt.readers; id++) {
        add_channel(&clients[id], id / opt.room_size);
        channels[id / opt.room_size].size++;
    }
}

/* -C rooms of -k members drawn at random, so that clients share some rooms and not others. */
static void random_rooms(void) {
    if (opt.channels < 1) opt.channels = 100;
    if (opt.channel_members > opt.readers) opt.channel_members = opt.readers;
    channels_allocate(opt.channels, opt.channel_members);
    int *deck = allocate(sizeof(int) * (size_t)opt.readers);
    for (int id = 0; id < opt.readers; id++) deck[id] = id;
    for (int number = 0; number < opt.channels; number++)
        for (int place = 0; place < opt.channel_members; place++) {
            int drawn = place + (int)(next_random() % (uint64_t)(opt.readers - place));
            int id = deck[drawn];
            deck[drawn] = deck[place];
            deck[place] = id;
            add_member(number, id);
        }
}

void layout_create(void) {
    if (opt.scenario == FANOUT) one_channel();
    else if (opt.scenario == CHANNELS) random_rooms();
    else if ((opt.scenario == STORM || opt.scenario == IDLE) && opt.room_size > 0) separate_rooms();
    else opt.channels = 0;
}

int joiner_count(void) {
    int count = 0;
    for (int id = 0; id < client_total(); id++)
        if (clients[id].channel_count) count++;
    return count;
}
