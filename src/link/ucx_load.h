/* ucx_load.h - UCX's functions, found when they are wanted: Tandem is built with its headers and runs without it. */
#ifndef TDI_LINK_UCX_LOAD_H
#define TDI_LINK_UCX_LOAD_H

#include <ucp/api/ucp.h>

#include "base/error.h"

#define TDI_UCX_FUNCTIONS(X)                                                                                           \
    X(ucp_am_data_release)                                                                                             \
    X(ucp_am_recv_data_nbx)                                                                                            \
    X(ucp_am_send_nbx)                                                                                                 \
    X(ucp_cleanup)                                                                                                     \
    X(ucp_config_modify)                                                                                               \
    X(ucp_config_read)                                                                                                 \
    X(ucp_config_release)                                                                                              \
    X(ucp_ep_close_nbx)                                                                                                \
    X(ucp_ep_create)                                                                                                   \
    X(ucp_ep_rkey_unpack)                                                                                              \
    X(ucp_get_version)                                                                                                 \
    X(ucp_init_version)                                                                                                \
    X(ucp_mem_map)                                                                                                     \
    X(ucp_mem_query)                                                                                                   \
    X(ucp_mem_unmap)                                                                                                   \
    X(ucp_request_check_status)                                                                                        \
    X(ucp_request_free)                                                                                                \
    X(ucp_rkey_buffer_release)                                                                                         \
    X(ucp_rkey_destroy)                                                                                                \
    X(ucp_rkey_pack)                                                                                                   \
    X(ucp_rkey_ptr)                                                                                                    \
    X(ucp_worker_arm)                                                                                                  \
    X(ucp_worker_create)                                                                                               \
    X(ucp_worker_destroy)                                                                                              \
    X(ucp_worker_get_address)                                                                                          \
    X(ucp_worker_get_efd)                                                                                              \
    X(ucp_worker_progress)                                                                                             \
    X(ucp_worker_release_address)                                                                                      \
    X(ucp_worker_set_am_recv_handler)                                                                                  \
    X(ucs_status_string)

#define TDI_UCX_MEMBER(name) __typeof__(name) *name;
typedef struct tdi_ucx_api {
    TDI_UCX_FUNCTIONS(TDI_UCX_MEMBER)
    unsigned major, minor;
    char version[32]; /* "1.13.1" */
} tdi_ucx_api;
#undef TDI_UCX_MEMBER

/* Loads UCX, once a process; it is never unloaded. TD_UNSUPPORTED: it is not there, or is older than the headers, with
 * how to install it. Any thread. */
td_status tdi_ucx_load(const tdi_ucx_api **api, tdi_error *error);

#endif
