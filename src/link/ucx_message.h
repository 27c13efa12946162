/* ucx_message.h - what stands before everything that fabrics of UCX say to each other, and the address of one. */
#ifndef TDI_LINK_UCX_MESSAGE_H
#define TDI_LINK_UCX_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/wire.h"

typedef enum tdi_ucx_what {
    TDI_UCX_DATA = 1, /* bytes of a frame's payload from `position` on */
    TDI_UCX_SEEN,     /* a frame whose payload lies in the sender's memory `memory` at `position` */
    TDI_UCX_MEMORY,   /* memory `memory` of `size` bytes begins at `position` there; its key is what follows */
    TDI_UCX_TAKEN,    /* the messages up to `sequence` have been dealt with; 0: the peer has been joined */
    TDI_UCX_BYE       /* the sender closes its fabric, or has no use for this peer */
} tdi_ucx_what;

/* Messages of 80 bytes, little-endian. Those up to MEMORY are numbered from 1 on. */
enum { TDI_UCX_MESSAGE_BYTES = 80 };

typedef struct tdi_ucx_message {
    uint64_t token;  /* of the view */
    uint64_t sender; /* of its fabric */
    uint64_t sequence;
    uint32_t generation; /* of the view */
    uint16_t what;
    uint16_t memory;
    uint64_t position;
    uint64_t size;
    tdi_frame frame;
} tdi_ucx_message;

void tdi_ucx_message_encode(const tdi_ucx_message *message, unsigned char bytes[TDI_UCX_MESSAGE_BYTES]);
tdi_ucx_message tdi_ucx_message_decode(const unsigned char bytes[TDI_UCX_MESSAGE_BYTES]);

/* The sides of a fabric: how it reaches who is on this host, and who is not. */
typedef enum tdi_ucx_side_kind { TDI_UCX_NEAR, TDI_UCX_FAR, TDI_UCX_SIDES } tdi_ucx_side_kind;

typedef struct tdi_ucx_bytes {
    const void *at; /* NULL: none */
    uint32_t size;
} tdi_ucx_bytes;

/* What a fabric's `address` says. */
typedef struct tdi_ucx_address {
    uint32_t major, minor;          /* of UCX */
    uint64_t fabric;                /* random */
    char host[TDI_UCX_HOST_BYTES];  /* tdi_ucx_host's text */
    uint32_t pid, descriptor, mark; /* where its mark is, see ucx_mark.c */
    tdi_ucx_bytes workers[TDI_UCX_SIDES];
} tdi_ucx_address;

/* Writes it to `bytes`, unless that is NULL. Returns how many bytes it takes. */
size_t tdi_ucx_address_encode(const tdi_ucx_address *address, unsigned char *bytes);
/* False: these bytes are none. What is found is borrowed from the bytes. */
bool tdi_ucx_address_decode(const void *bytes, size_t size, tdi_ucx_address *address);

#endif
