/* ucx_engine.c - the engine of UCX: its contexts. */
#include "link/ucx.h"

#include <stdlib.h>

#include "link/ucx_struct.h"

/* Other versions have other names for some; a name that a version does not know is ignored. */
#define QUEUE "512"
_Static_assert(TDI_UCX_QUEUE == 512, "QUEUE is its text");

typedef struct setting {
    const char *name, *value;
    bool is_ours; /* holds even where the user has set UCX_<name> */
} setting;

static const setting near_settings[] = {
    {"TLS", "posix,self", true},      /* nothing listens on a port */
    {"ALLOC_PRIO", "md:posix", true}, /* memory that cannot be seen is not wanted from UCX */
    {"MM_FIFO_SIZE", QUEUE, true},    /* see ucx_struct.h, TDI_UCX_QUEUE */
    {"POSIX_FIFO_SIZE", QUEUE, true},
    {"MM_FIFO_RELEASE_FACTOR", "0.125", true}, /* TDI_UCX_UNFREED / TDI_UCX_QUEUE */
    {"POSIX_FIFO_RELEASE_FACTOR", "0.125", true},
    {"MM_RX_BUFS_GROW", "1024", true}, /* all of a queue's memory at once: peers attach to it as they join */
    {"POSIX_RX_BUFS_GROW", "1024", true},
    {"PROTO_ENABLE", "n", false}, /* the protocols of 1.18 take twice the time */
    {NULL, NULL, false},
};

static const setting far_settings[] = {
    {"TLS", "tcp,ib", false},            /* no shared memory: frozen peers could write late */
    {"PROTO_ENABLE", "n", false},        /* three times slower by TCP */
    {"ZCOPY_THRESH", "inf", true},       /* pieces are copied: UCX keeps no pointer to a payload */
    {"KEEPALIVE_INTERVAL", "inf", true}, /* who is gone, links tell; 1.13's keepalive ends the process by assertions */
    {NULL, NULL, false},
};

static bool user_has_set(const char *name)
{
    char variable[64];
    snprintf(variable, sizeof variable, "UCX_%s", name);
    return getenv(variable) != NULL;
}

static void apply(const tdi_ucx_api *api, ucp_config_t *config, const setting *settings)
{
    for (const setting *s = settings; s->name; s++)
        if (s->value && (s->is_ours || !user_has_set(s->name)))
            (void)api->ucp_config_modify(config, s->name, s->value);
}

static td_status open_context(tdi_ucx *ucx, tdi_ucx_side_kind side, const setting *const settings[], tdi_error *error)
{
    const tdi_ucx_api *api = ucx->api;
    ucp_config_t *config;
    ucs_status_t status = api->ucp_config_read(NULL, NULL, &config);
    if (status == UCS_OK) {
        for (int i = 0; settings[i]; i++)
            apply(api, config, settings[i]);
        const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED,
                                     .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP |
                                                 (side == TDI_UCX_NEAR ? UCP_FEATURE_RMA : 0),
                                     .mt_workers_shared = 1};
        status = api->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &ucx->contexts[side]);
        api->ucp_config_release(config);
    }
    if (status == UCS_OK)
        return TD_OK;
    ucx->contexts[side] = NULL;
    return tdi_fail(error, TD_UNSUPPORTED, "UCX %s finds no %s: %s", api->version,
                    side == TDI_UCX_NEAR ? "shared memory" : "network", api->ucs_status_string(status));
}

static void engine_release(tdi_engine *engine)
{
    tdi_ucx *ucx = (tdi_ucx *)engine;
    tdi_ucx_marks_close(&ucx->marks);
    for (int side = 0; side < TDI_UCX_SIDES; side++)
        if (ucx->contexts[side] && (side == TDI_UCX_NEAR || !ucx->has_left_worker))
            ucx->api->ucp_cleanup(ucx->contexts[side]);
    tdi_vec_free(&ucx->memories);
    pthread_mutex_destroy(&ucx->lock);
    free(ucx);
}

static td_status open_contexts(tdi_ucx *ucx, const tdi_ucx_spec *spec, tdi_error *error)
{
    const setting chosen[] = {{"NET_DEVICES", spec->devices, true},
                              {"PORT_RANGE", spec->ports, true}, /* 1.13 */
                              {"TCP_PORT_RANGE", spec->ports, true},
                              {NULL, NULL, false}};
    tdi_error *why = spec->reach == TDI_UCX_HOST ? error : NULL;
    td_status near = tdi_ucx_marks_open(&ucx->marks, why);
    if (near == TD_OK)
        near = open_context(ucx, TDI_UCX_NEAR, (const setting *const[]){near_settings, NULL}, why);
    if (spec->reach == TDI_UCX_HOST)
        return near;
    return open_context(ucx, TDI_UCX_FAR, (const setting *const[]){far_settings, chosen, NULL}, error);
}

td_status tdi_ucx_engine_create(const tdi_ucx_spec *spec, tdi_engine **engine, tdi_error *error)
{
    const tdi_ucx_api *api;
    *engine = NULL;
    TDI_TRY(tdi_ucx_load(&api, error));
    tdi_ucx *ucx = calloc(1, sizeof *ucx);
    if (!ucx)
        return tdi_no_memory(error);
    ucx->engine = (tdi_engine){
        "UCX", false, false, tdi_ucx_memory_get, tdi_ucx_memory_release, tdi_ucx_fabric_open, engine_release};
    ucx->api = api;
    pthread_mutex_init(&ucx->lock, NULL);
    td_status status = open_contexts(ucx, spec, error);
    if (status != TD_OK) {
        engine_release(&ucx->engine);
        return status;
    }
    *engine = &ucx->engine;
    return TD_OK;
}

const char *tdi_ucx_loaded_version(tdi_error *error)
{
    const tdi_ucx_api *api;
    return tdi_ucx_load(&api, error) == TD_OK ? api->version : NULL;
}
