/* hdf5_lock.c - the lock around libhdf5. */
#include "files/hdf5_lock.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

tdi_hdf5_silence tdi_hdf5_enter(void)
{
    tdi_hdf5_silence old = {0};
    pthread_mutex_lock(&lock);
    H5Eget_auto2(H5E_DEFAULT, &old.print, &old.data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return old;
}

void tdi_hdf5_leave(tdi_hdf5_silence old)
{
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, old.print, old.data);
    pthread_mutex_unlock(&lock);
}
