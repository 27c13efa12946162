/* hdf5_driver.c - a file driver ("HDF5 Virtual File Layer"), of which libhdf5 asks for offsets and bytes. libhdf5's own
 * driver for files in memory, "core", would hold whole files. */
#include "files/hdf5/hdf5_driver.h"

#include <string.h>

#if H5_VERSION_GE(1, 14, 0)
#include <H5FDdevelop.h>
#endif

#define PAGE sizeof(((tdi_hdf5_page *)0)->bytes)

typedef struct driver_file {
    H5FD_t head; /* libhdf5's; must be first */
    haddr_t end; /* end of the space that libhdf5 has allocated */
    tdi_hdf5_pages pages;
} driver_file;

/* ---- pages ---- */

/* The index of the first page with that number or a larger one. */
static int place_of(const tdi_hdf5_pages *pages, uint64_t number)
{
    int low = 0, high = pages->list.count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (pages->list.at[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_page(const tdi_hdf5_pages *pages, int place, uint64_t number)
{
    return place < pages->list.count && pages->list.at[place]->number == number;
}

static tdi_hdf5_page *make_page(tdi_hdf5_pages *pages, int place, uint64_t number)
{
    tdi_hdf5_page *made = calloc(1, sizeof *made);
    if (!made || !tdi_push(&pages->list, NULL)) {
        free(made);
        return NULL;
    }
    tdi_hdf5_page **at = pages->list.at + place;
    memmove(at + 1, at, (size_t)(pages->list.count - 1 - place) * sizeof *at);
    made->number = number;
    return *at = made;
}

/* The number of the `size` bytes from `at` on that lie in the page of `at`. */
static size_t within_page(uint64_t at, size_t size)
{
    size_t left = PAGE - at % PAGE;
    return size < left ? size : left;
}

static bool write_pages(tdi_hdf5_pages *pages, uint64_t at, const unsigned char *from, size_t size)
{
    for (size_t piece; size > 0; at += piece, from += piece, size -= piece) {
        int place = place_of(pages, at / PAGE);
        tdi_hdf5_page *page =
            is_page(pages, place, at / PAGE) ? pages->list.at[place] : make_page(pages, place, at / PAGE);
        if (!page)
            return false;
        piece = within_page(at, size);
        memcpy(page->bytes + at % PAGE, from, piece);
    }
    return true;
}

void tdi_hdf5_pages_read(const tdi_hdf5_pages *pages, uint64_t at, void *to, size_t size)
{
    unsigned char *next = to;
    for (size_t piece; size > 0; at += piece, next += piece, size -= piece) {
        int place = place_of(pages, at / PAGE);
        piece = within_page(at, size);
        if (is_page(pages, place, at / PAGE))
            memcpy(next, pages->list.at[place]->bytes + at % PAGE, piece);
        else
            memset(next, 0, piece);
    }
}

/* ---- the driver ---- */

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t largest)
{
    (void)name, (void)flags, (void)access, (void)largest;
    driver_file *made = calloc(1, sizeof *made);
    return made ? &made->head : NULL;
}

static herr_t driver_close(H5FD_t *head)
{
    driver_file *file = (driver_file *)head;
    for (int i = 0; i < file->pages.list.count; i++)
        free(file->pages.list.at[i]);
    tdi_vec_free(&file->pages.list);
    free(file);
    return 0;
}

/* Asks libhdf5 to put structures, and small arrays, side by side, so that they touch fewer pages. */
static herr_t driver_query(const H5FD_t *head, unsigned long *features)
{
    (void)head;
    *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t driver_end(const H5FD_t *head, H5FD_mem_t type)
{
    (void)type;
    return ((const driver_file *)head)->end;
}

static herr_t driver_set_end(H5FD_t *head, H5FD_mem_t type, haddr_t end)
{
    (void)type;
    ((driver_file *)head)->end = end;
    return 0;
}

static herr_t driver_pages(H5FD_t *head, hid_t access, void **pages)
{
    (void)access;
    *pages = &((driver_file *)head)->pages;
    return 0;
}

static herr_t driver_read(H5FD_t *head, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size, void *to)
{
    (void)type, (void)transfer;
    tdi_hdf5_pages_read(&((driver_file *)head)->pages, at, to, size);
    return 0;
}

static herr_t driver_write(H5FD_t *head, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t size, const void *from)
{
    (void)type, (void)transfer;
    tdi_hdf5_pages *pages = &((driver_file *)head)->pages;
    return pages->ended || write_pages(pages, at, from, size) ? 0 : -1;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 14, 0)
    .version = H5FD_CLASS_VERSION,
    .value = H5_VFD_RESERVED, /* the first value that is free for a program's own driver */
#endif
    .name = "tandem",
    .maxaddr = HADDR_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .open = driver_open,
    .close = driver_close,
    .query = driver_query,
    .get_eoa = driver_end,
    .set_eoa = driver_set_end,
    .get_eof = driver_end,
    .get_handle = driver_pages,
    .read = driver_read,
    .write = driver_write,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

static hid_t create_with(hid_t access, hid_t registered, tdi_hdf5_pages **pages)
{
    void *handle;
    hid_t id = H5I_INVALID_HID;
    if (H5Pset_driver(access, registered, NULL) >= 0)
        id = H5Fcreate("tandem", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (id >= 0 && H5Fget_vfd_handle(id, H5P_DEFAULT, &handle) >= 0) {
        *pages = handle;
        return id;
    }
    if (id >= 0)
        H5Fclose(id);
    return H5I_INVALID_HID;
}

hid_t tdi_hdf5_create_in_pages(tdi_hdf5_pages **pages)
{
    hid_t registered = H5FDregister(&driver);
    hid_t access = registered < 0 ? H5I_INVALID_HID : H5Pcreate(H5P_FILE_ACCESS);
    hid_t id = access < 0 ? H5I_INVALID_HID : create_with(access, registered, pages);
    if (access >= 0)
        H5Pclose(access);
    if (id >= 0)
        (*pages)->registered = registered;
    else if (registered >= 0)
        H5FDunregister(registered);
    return id;
}

/* libhdf5 1.10 reads the driver once more after it has closed the file, so the driver is unregistered last. */
void tdi_hdf5_close_in_pages(hid_t id, tdi_hdf5_pages *pages)
{
    hid_t registered = pages->registered;
    pages->ended = true;
    H5Fclose(id);
    H5FDunregister(registered);
}
