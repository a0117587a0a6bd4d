/* SPDX-License-Identifier: MIT */
/*
 * frame: what the guest's init (init.c) tells the host (vm.c) over one virtio port.
 *
 * A frame is a kind (one byte), a length (32 bits, little endian) and so many bytes. One stream
 * carries everything, so nothing can arrive out of order or after the end, and a cut stream is
 * seen: it has no FRAME_EXIT.
 */
#ifndef NB_LAB_FRAME_H
#define NB_LAB_FRAME_H

#include <stdint.h>
#include <stddef.h>

enum frame_kind {
	FRAME_READY =
		'R', /* the command is about to start; text: seconds since the kernel started */
	FRAME_STDOUT = '1', /* bytes the command wrote */
	FRAME_STDERR = '2',
	FRAME_FILES = 'F', /* a piece of a tar archive of the result directory */
	FRAME_ERROR =
		'L', /* the lab could not do what it was asked; one line of text; the last frame */
	FRAME_EXIT = 'X', /* decimal exit status as a shell gives it; the last frame */
};

enum { FRAME_HEAD = 5, FRAME_MAX = 1 << 16 };

static inline void frame_head(uint8_t head[FRAME_HEAD], enum frame_kind kind, size_t len)
{
	head[0] = (uint8_t)kind;
	for (int i = 0; i < 4; i++)
		head[1 + i] = (uint8_t)(len >> (8 * i));
}

static inline size_t frame_len(const uint8_t head[FRAME_HEAD])
{
	size_t len = 0;

	for (int i = 0; i < 4; i++)
		len |= (size_t)head[1 + i] << (8 * i);
	return len;
}

#endif
