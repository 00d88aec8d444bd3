/* Where to put the nodes of a pool: a plain search over 192 hosts, the same answer every time. */
#include "placement.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ZONES = 3, RACKS = 8, SLOTS = 8 };
enum { BUDGET = 20000, PATIENCE = 20000 };

typedef struct {
    uint32_t free_gb;
    uint32_t load;
} host_t;

typedef struct {
    bool in[HOSTS];
} chosen_t;

/* Xorshift: the search must come out the same in every attempt. */
static size_t roll(uint64_t *dice, size_t sides) {
    *dice ^= *dice << 13;
    *dice ^= *dice >> 7;
    *dice ^= *dice << 17;
    return (size_t)(*dice % sides);
}

static host_t host_at(size_t index) {
    uint64_t dice = UINT64_C(0x9e3779b97f4a7c15) ^ (index + 1);
    roll(&dice, 1);
    uint32_t free_gb = UINT32_C(8) << roll(&dice, 5);
    return (host_t){free_gb, (uint32_t)roll(&dice, 50)};
}

static uint32_t need_gb(const char *image) {
    const char *dash = strrchr(image, '-');
    const char *last = dash == NULL ? image : dash + 1;
    char *end;
    if (*last < '0' || *last > '9') {
        return 4;
    }
    unsigned long size = strtoul(last, &end, 10);
    return strcmp(end, "g") == 0 ? (uint32_t)size : 4;
}

/* FNV-1a: other images, other searches. */
static uint64_t seed(const char *image) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *image != 0; image++) {
        hash = (hash ^ (unsigned char)*image) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static chosen_t at_random(size_t count, const size_t *fit, size_t fits, uint64_t *dice) {
    size_t left[HOSTS];
    chosen_t chosen = {{false}};
    memcpy(left, fit, fits * sizeof(*fit));
    for (; count > 0; count--) {
        size_t at = roll(dice, fits);
        chosen.in[left[at]] = true;
        left[at] = left[--fits];
    }
    return chosen;
}

/* From a random place on, the first that fits and is in, or is not; HOSTS if there is none. */
static size_t pick(const chosen_t *chosen, bool inside, const size_t *fit, size_t fits, uint64_t *dice) {
    size_t from = roll(dice, fits);
    for (size_t step = 0; step < fits; step++) {
        size_t index = fit[(from + step) % fits];
        if (chosen->in[index] == inside) {
            return index;
        }
    }
    return HOSTS;
}

/* Loaded hosts cost their load, crowded racks and zones the square of their number. */
static uint32_t cost(const chosen_t *chosen, const host_t *hosts) {
    uint32_t load = 0, racks[ZONES * RACKS] = {0}, zones[ZONES] = {0};
    for (size_t i = 0; i < HOSTS; i++) {
        if (chosen->in[i]) {
            load += hosts[i].load;
            racks[i / SLOTS]++;
            zones[i / SLOTS / RACKS]++;
        }
    }
    for (size_t i = 0; i < ZONES * RACKS; i++) {
        load += 40 * racks[i] * racks[i];
    }
    for (size_t i = 0; i < ZONES; i++) {
        load += 5 * zones[i] * zones[i];
    }
    return load;
}

static void name_hosts(const chosen_t *chosen, char names[HOSTS][NAME_SIZE]) {
    size_t count = 0;
    for (unsigned i = 0; i < HOSTS; i++) {
        if (chosen->in[i]) {
            unsigned rack = i / SLOTS;
            snprintf(names[count++], NAME_SIZE, "%c%u-%02u", 'a' + rack / RACKS, rack % RACKS + 1, i % SLOTS + 1);
        }
    }
}

int placement_search(size_t count, const char *image, char names[HOSTS][NAME_SIZE]) {
    host_t hosts[HOSTS];
    size_t fit[HOSTS], fits = 0;
    uint32_t need = need_gb(image);
    for (size_t i = 0; i < HOSTS; i++) {
        hosts[i] = host_at(i);
        if (hosts[i].free_gb >= need) {
            fit[fits++] = i;
        }
    }
    if (count == 0 || count > fits) {
        return false;
    }
    uint64_t dice = seed(image) | 1;
    chosen_t best;
    uint32_t lowest = UINT32_MAX;
    for (unsigned spent = 0; spent < BUDGET;) {
        chosen_t chosen = at_random(count, fit, fits, &dice);
        uint32_t now = cost(&chosen, hosts);
        for (unsigned in_vain = 0; in_vain < PATIENCE && spent < BUDGET; spent++) {
            chosen_t other = chosen;
            size_t out = pick(&chosen, true, fit, fits, &dice);
            size_t come = pick(&chosen, false, fit, fits, &dice);
            if (come == HOSTS) { /* all that fit are in */
                name_hosts(&chosen, names);
                return true;
            }
            other.in[out] = false;
            other.in[come] = true;
            uint32_t then = cost(&other, hosts);
            if (then < now) {
                chosen = other;
                now = then;
                in_vain = 0;
            } else {
                in_vain++;
            }
        }
        if (now < lowest) {
            best = chosen;
            lowest = now;
        }
    }
    name_hosts(&best, names);
    return true;
}
