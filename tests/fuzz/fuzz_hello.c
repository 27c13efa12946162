/* fuzz_hello.c - any bytes as a hello: no hello, or one that reads the same when it is written again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void want(bool holds)
{
    if (!holds)
        abort();
}

static bool is_whole(const tdi_hello *hello)
{
    return hello->protocol == TDI_HELLO_PROTOCOL;
}

static void check_again(const tdi_hello *hello)
{
    tdi_hello again;
    char *text = tdi_hello_write(hello);
    want(text && tdi_hello_read(text, strlen(text), &again, NULL) == TD_OK);
    want(again.purpose == hello->purpose && again.task == hello->task && again.port == hello->port);
    want(again.incarnation == hello->incarnation && strcmp(again.version, hello->version) == 0);
    want(strcmp(again.cluster, hello->cluster) == 0 && strcmp(again.host, hello->host) == 0);
    free(text);
}

/* A hello that may be taken is of another task of this cluster. */
static void check_taken(const tdi_hello *hello, const tdi_hello *own)
{
    tdi_error error = {0};
    if (tdi_hello_check(hello, own, 3, "worker 1", &error) != TD_OK)
        want(strncmp(error.message, "worker 1 ", 9) == 0);
    else
        want(is_whole(hello) && hello->task >= 0 && hello->task < 3 && hello->task != own->task);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const tdi_hello own = {.protocol = TDI_HELLO_PROTOCOL, .version = "1", .cluster = "3 workers"};
    tdi_hello hello;
    tdi_error error = {0};
    if (tdi_hello_read((const char *)bytes, size, &hello, &error) != TD_OK) {
        want(*error.message);
        return 0;
    }
    if (is_whole(&hello))
        check_again(&hello);
    check_taken(&hello, &own);
    return 0;
}
