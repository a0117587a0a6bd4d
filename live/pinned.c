/* SPDX-License-Identifier: MIT */
/*
 * pinned: memory that the kernel or a device is to write to for as long as it likes: io_uring's
 * registered buffers and rings of buffers, VFIO's DMA. Pages that are pinned cannot be moved, and a
 * fork must leave them with the parent, which the kernel does for ordinary memory: so that is what
 * they become first.
 *
 * liburing makes its system calls itself; its functions are hooked. It may be loaded later than the
 * shim, and for one library alone: who calls the hook is asked for, then.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <linux/vfio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include "call.h"
#include "os.h"
#include "os_arch.h"
#include "shim.h"

#define HOOK __attribute__((visibility("default")))

enum {
	CHUNK = 32, /* buffers looked at in one go */
	MAX_ENTRIES = 1 << 16,
};

/* Later than the headers of the kernel that it may be built with. */
#define REGISTERED_RING (1U << 31) /* IORING_REGISTER_USE_REGISTERED_RING */
#define MEM_REGION	34	   /* IORING_REGISTER_MEM_REGION */
#define NO_MMAP		(1U << 14) /* IORING_SETUP_NO_MMAP */

bool nb_shim_copy(void *to, const void *from, size_t bytes)
{
	struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};
	const long pid = nb_arch_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
	long n;

	if (from == NULL)
		return false;
	n = nb_arch_call(SYS_process_vm_readv, pid, (long)&here, 1, (long)&there, 1, 0);
	/* A sandbox may refuse the question; most programs pass what they may read. */
	if (nb_os_failed(n) && n != -EFAULT) {
		memcpy(to, from, bytes);
		return true;
	}
	return n == (long)bytes;
}

static bool is_managing(void)
{
	return nb_shim_guest()->regions.nr > 0;
}

static void eject(uint64_t addr, uint64_t bytes)
{
	/* More than there is: the call fails. */
	if (addr + bytes >= addr)
		nb_call_eject(nb_shim_guest(), addr, bytes);
}

static void eject_buffers(const struct iovec *v, uint64_t nr)
{
	struct iovec chunk[CHUNK];

	if (!is_managing())
		return;
	for (uint64_t at = 0; at < nr; at += CHUNK) {
		const uint64_t n = nr - at < CHUNK ? nr - at : CHUNK;

		if (!nb_shim_copy(chunk, v + at, n * sizeof(*v)))
			return;
		for (uint64_t i = 0; i < n; i++)
			eject((uint64_t)(uintptr_t)chunk[i].iov_base, chunk[i].iov_len);
	}
}

static void eject_ring(const void *arg)
{
	struct io_uring_buf_reg r;

	if (is_managing() && nb_shim_copy(&r, arg, sizeof(r)))
		eject(r.ring_addr, r.ring_entries * (uint64_t)sizeof(struct io_uring_buf));
}

/* The address of a region, which begins with its own address and size. */
static void eject_region(const void *arg)
{
	uint64_t at, region[2];

	if (is_managing() && nb_shim_copy(&at, arg, sizeof(at)) &&
		nb_shim_copy(region, (const void *)(uintptr_t)at, sizeof(region)))
		eject(region[0], region[1]);
}

/* `user_addr`, which older headers keep in reserve. */
static uint64_t last_word(const void *offsets, size_t bytes)
{
	uint64_t word;

	memcpy(&word, (const char *)offsets + bytes - sizeof(word), sizeof(word));
	return word;
}

/* Rings in the program's own memory: how large they are, at most. */
static void eject_rings(uint64_t entries, const void *arg)
{
	struct io_uring_params p;

	if (!is_managing() || !nb_shim_copy(&p, arg, sizeof(p)) || !(p.flags & NO_MMAP))
		return;
	entries = entries < MAX_ENTRIES ? entries : MAX_ENTRIES;
	entries = 2 * entries + 2 * (uint64_t)p.cq_entries + NB_PAGE_SIZE;
	eject(last_word(&p.sq_off, sizeof(p.sq_off)), entries * 2 * sizeof(struct io_uring_sqe));
	eject(last_word(&p.cq_off, sizeof(p.cq_off)), entries * 2 * sizeof(struct io_uring_cqe));
}

static void eject_for(unsigned int opcode, const void *arg, unsigned int nr)
{
	struct io_uring_rsrc_register r;
	struct io_uring_rsrc_update2 u;

	switch (opcode & ~REGISTERED_RING) {
	case IORING_REGISTER_BUFFERS:
		eject_buffers(arg, nr);
		break;
	case IORING_REGISTER_BUFFERS2:
		if (is_managing() && nb_shim_copy(&r, arg, sizeof(r)))
			eject_buffers((const struct iovec *)(uintptr_t)r.data, r.nr);
		break;
	case IORING_REGISTER_BUFFERS_UPDATE:
		if (is_managing() && nb_shim_copy(&u, arg, sizeof(u)))
			eject_buffers((const struct iovec *)(uintptr_t)u.data, u.nr);
		break;
	case IORING_REGISTER_PBUF_RING:
		eject_ring(arg);
		break;
	case MEM_REGION:
		eject_region(arg);
		break;
	default:
		break;
	}
}

/* ---- by number ---- */

long nb_shim_io_uring_register(const long *a)
{
	eject_for((unsigned int)a[1], (const void *)a[2], (unsigned int)a[3]);
	return nb_arch_call(SYS_io_uring_register, a[0], a[1], a[2], a[3], 0, 0);
}

long nb_shim_io_uring_setup(const long *a)
{
	eject_rings((uint64_t)(unsigned int)a[0], (const void *)a[1]);
	return nb_arch_call(SYS_io_uring_setup, a[0], a[1], 0, 0, 0, 0);
}

void nb_shim_before_dma(const void *arg)
{
	struct vfio_iommu_type1_dma_map m;

	if (is_managing() && nb_shim_copy(&m, arg, sizeof(m)))
		eject(m.vaddr, m.size);
}

/* ---- liburing's ---- */

static void *find(const char *name)
{
	static const char *const libraries[] = {
		"liburing.so.2", "liburing-ffi.so.2", "liburing.so.1"};
	void *fn = dlsym(RTLD_NEXT, name);

	for (size_t i = 0; fn == NULL && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);

		if (library == NULL)
			continue;
		fn = dlsym(library, name);
		/* Who loaded it keeps it. */
		dlclose(library);
	}
	return fn;
}

/* X(name, parameters, arguments, what is to be ejected) */
#define LIBURING_CALLS(X)                                                                          \
	X(io_uring_register_buffers, (void *ring, const struct iovec *v, unsigned int nr),         \
		(ring, v, nr), eject_buffers(v, nr))                                               \
	X(io_uring_register_buffers_tags,                                                          \
		(void *ring, const struct iovec *v, const uint64_t *tags, unsigned int nr),        \
		(ring, v, tags, nr), eject_buffers(v, nr))                                         \
	X(io_uring_register_buffers_update_tag,                                                    \
		(void *ring, unsigned int off, const struct iovec *v, const uint64_t *tags,        \
			unsigned int nr),                                                          \
		(ring, off, v, tags, nr), eject_buffers(v, nr))                                    \
	X(io_uring_register_buf_ring, (void *ring, void *reg, unsigned int flags),                 \
		(ring, reg, flags), eject_ring(reg))                                               \
	X(io_uring_queue_init_mem,                                                                 \
		(unsigned int entries, void *ring, void *params, void *buffer, size_t bytes),      \
		(entries, ring, params, buffer, bytes), eject((uint64_t)buffer, bytes))            \
	X(io_uring_register,                                                                       \
		(unsigned int fd, unsigned int opcode, const void *arg, unsigned int nr),          \
		(fd, opcode, arg, nr), eject_for(opcode, arg, nr))

#define X(name, parameters, arguments, ejects)                                                     \
	HOOK int name parameters;                                                                  \
	HOOK int name parameters                                                                   \
	{                                                                                          \
		int(*real) parameters = (int(*) parameters)find(#name);                            \
                                                                                                   \
		if (real == NULL)                                                                  \
			return -ENOSYS;                                                            \
		ejects;                                                                            \
		return real arguments;                                                             \
	}
LIBURING_CALLS(X)
#undef X
