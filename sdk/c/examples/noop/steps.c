/* Five steps that do nothing but ask for the next state, as guests/noop: for the benchmark. */
#include "interlock.h"

static il_end s1(il_entity *entity) {
    return il_transition(entity, "s2");
}

static il_end s2(il_entity *entity) {
    return il_transition(entity, "s3");
}

static il_end s3(il_entity *entity) {
    return il_transition(entity, "s4");
}

static il_end s4(il_entity *entity) {
    return il_transition(entity, "s5");
}

static il_end s5(il_entity *entity) {
    return il_transition(entity, "idle");
}

IL_STEPS({"s1", s1}, {"s2", s2}, {"s3", s3}, {"s4", s4}, {"s5", s5});
