/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps that a program finds which is built for user space: services of every kind at the addresses of
 * tests/fuzz/seeds.py, planned and encoded by the code that every command runs, and changed once, so that arcs are moved.
 */
#ifndef RINGLB_TESTS_WORLD_H
#define RINGLB_TESTS_WORLD_H

#include "ringlb_abi.h"

#define WORLD_TABLES (1u << 16) /* bytes */
#define WORLD_BACKENDS 32u
#define WORLD_SERVICES 32u
#define WORLD_HZ 100u
#define WORLD_NOW 1000u    /* seconds, as in stamps */
#define WORLD_INTERFACE 2u /* ifindex of the one that packets come in through; the other one is the next */
#define WORLD_INTERFACES 2u

/* Fills in both, all zero before. Ends the process with a message where that fails. */
void world_make(struct ringlb_tables *tables, struct ringlb_backend *backends);

#endif
