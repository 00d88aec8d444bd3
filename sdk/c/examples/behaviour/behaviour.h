/* What the files of this step share. */
#ifndef BEHAVIOUR_H
#define BEHAVIOUR_H

#include "interlock.h"

typedef struct {
    const char *what;
    il_end (*does)(il_entity *entity, const il_json *value);
} behaviour_t;

/* Each ends with a behaviour without a name. */
extern const behaviour_t reads[], moves[], powers[], rows[], hostile[];

/* Moves to `idle` with what a behaviour saw, and nothing else. */
IL_MUST_USE il_end answer(il_entity *entity, const il_json *saw);
/* The same with what a refusal says; permanent if it was none. */
IL_MUST_USE il_end answer_refused(il_entity *entity, bool accepted, const il_rejection *why);
IL_MUST_USE il_end answer_refusal(il_entity *entity, const il_rejection *why);
il_json *refusal(const il_rejection *why);

#endif
