#ifndef PLACEMENT_H
#define PLACEMENT_H

#include <stddef.h>
#include <stdint.h>

enum { HOSTS = 192, NAME_SIZE = 8 };

/* Writes the names of `count` hosts for this image, spread well, in order; false if there is no room.
 *
 * An image whose name ends in a number of gigabytes (`train-80g`) needs as much free memory on each host; others
 * need 4. */
int placement_search(size_t count, const char *image, char names[HOSTS][NAME_SIZE]);

#endif
