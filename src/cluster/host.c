/* host.c - names, addresses and ports, as this host has them. */
#include "cluster/host.h"

#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool tdi_is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

static bool has(const tdi_addresses *list, const char *address)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->at[i], address) == 0)
            return true;
    return false;
}

/* Adds an IPv4 or IPv6 address, once. */
static void add(tdi_addresses *list, const struct sockaddr *address, socklen_t size)
{
    char text[TDI_ADDRESS];
    if (list->count < TDI_MAX_ADDRESSES &&
        getnameinfo(address, size, text, sizeof text, NULL, 0, NI_NUMERICHOST) == 0 && !has(list, text))
        strcpy(list->at[list->count++], text);
}

static struct addrinfo *look_up(const char *name, const char *port, int flags)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags}, *found;
    return getaddrinfo(name, port, &hints, &found) == 0 ? found : NULL;
}

static void resolve(const char *name, tdi_addresses *found)
{
    struct addrinfo *first = look_up(name, NULL, 0);
    found->count = 0;
    for (struct addrinfo *a = first; a; a = a->ai_next)
        add(found, a->ai_addr, a->ai_addrlen);
    if (first)
        freeaddrinfo(first);
}

static void own(tdi_addresses *found)
{
    struct ifaddrs *first;
    found->count = 0;
    if (getifaddrs(&first) != 0)
        return;
    for (struct ifaddrs *a = first; a; a = a->ifa_next)
        if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET)
            add(found, a->ifa_addr, sizeof(struct sockaddr_in));
        else if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET6)
            add(found, a->ifa_addr, sizeof(struct sockaddr_in6));
    freeifaddrs(first);
}

/* ---- who listens ---- */

/* The inode of a listening socket at the port, by a table as /proc/net/tcp; 0: none there. */
static unsigned long listener_in(const char *table, int port)
{
    const unsigned listening = 10;
    char line[512];
    unsigned here, state;
    unsigned long inode, found = 0;
    FILE *file = fopen(table, "r");
    while (file && !found && fgets(line, sizeof line, file))
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*d %*d %lu", &here, &state, &inode) == 3 &&
            here == (unsigned)port && state == listening)
            found = inode;
    if (file)
        fclose(file);
    return found;
}

static bool holds_socket(const char *process, unsigned long inode)
{
    char path[300], wanted[64], link[64];
    bool holds = false;
    snprintf(path, sizeof path, "/proc/%.20s/fd", process);
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && !holds && (entry = readdir(folder));) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, link, sizeof link - 1);
        link[length > 0 ? length : 0] = '\0';
        holds = strcmp(link, wanted) == 0;
    }
    if (folder)
        closedir(folder);
    return holds;
}

static void name_process(const char *process, char who[TDI_ADDRESS])
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%.20s/comm", process);
    FILE *file = fopen(path, "r");
    if (file && fgets(name, sizeof name, file))
        name[strcspn(name, "\n")] = '\0';
    if (file)
        fclose(file);
    snprintf(who, TDI_ADDRESS, *name ? "process %.20s (%s)" : "process %.20s", process, name);
}

static void find_owner(int port, char who[TDI_ADDRESS])
{
    unsigned long inode = listener_in("/proc/net/tcp", port);
    if (!inode)
        inode = listener_in("/proc/net/tcp6", port);
    DIR *processes = inode ? opendir("/proc") : NULL;
    strcpy(who, "another process");
    for (struct dirent *entry; processes && (entry = readdir(processes));)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && holds_socket(entry->d_name, inode)) {
            name_process(entry->d_name, who);
            break;
        }
    if (processes)
        closedir(processes);
}

/* Listens there for a moment: what it is asked is whether that can be done. */
static bool in_use(const char *address, int port, char who[TDI_ADDRESS])
{
    char number[16];
    snprintf(number, sizeof number, "%d", port);
    struct addrinfo *at = look_up(address, number, AI_NUMERICHOST | AI_NUMERICSERV);
    int fd = at ? socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    bool taken = false;
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
        taken = (bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, 1) != 0) && errno == EADDRINUSE;
        close(fd);
    }
    if (at)
        freeaddrinfo(at);
    if (taken)
        find_owner(port, who);
    return taken;
}

const tdi_host tdi_this_host = {resolve, own, in_use};
