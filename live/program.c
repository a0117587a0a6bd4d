/* SPDX-License-Identifier: MIT */
/* program: what can be preloaded into a program, by its file. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "launch.h"

enum {
	SCRIPTS_DEEP = 4, /* as the kernel allows interpreters of interpreters */
	MAX_HEADERS = 256,
};

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#else
#define OUR_MACHINE EM_AARCH64
#endif

const char *const nb_program_texts[NB_NR_PROGRAM_KINDS] = {
#define X(NAME, text) text,
	NB_PROGRAM_KINDS(X)
#undef X
};

/* ---- finding it ---- */

static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return access(path, X_OK) == 0 ? 0 : -errno;
}

static int search(const char *name, char *path, size_t len)
{
	const char *dirs = getenv("PATH");
	int err = -ENOENT;

	if (strchr(name, '/') != NULL) {
		snprintf(path, len, "%s", name);
		return executable(path);
	}
	for (const char *p = dirs ? dirs : "/bin:/usr/bin"; *name; p++) {
		const int n = (int)strcspn(p, ":");
		int found;

		snprintf(path, len, "%.*s%s%s", n, p, n ? "/" : "./", name);
		found = executable(path);
		if (found == 0)
			return 0;
		err = found == -EACCES ? found : err;
		p += n;
		if (*p == '\0')
			break;
	}
	return err;
}

/* ---- looking at it ---- */

static bool is_privileged(int fd)
{
	struct stat st;
	char caps[64];

	if (fstat(fd, &st) == 0 && (st.st_mode & (S_ISUID | S_ISGID)) &&
		(st.st_uid != geteuid() || (st.st_mode & S_ISGID)))
		return true;
	return fgetxattr(fd, "security.capability", caps, sizeof(caps)) > 0 && geteuid() != 0;
}

/* A note of Go's linker: 4 bytes each of name size, data size, type; then the name. */
static bool is_go_note(const char *note, size_t len)
{
	for (size_t at = 0; at + 16 <= len; at += 4)
		if (memcmp(note + at + 12, "Go\0\0", 4) == 0)
			return true;
	return false;
}

struct headers {
	bool interpreter, go;
};

static int read_headers(int fd, const Elf64_Ehdr *e, struct headers *h)
{
	if (e->e_phentsize != sizeof(Elf64_Phdr) || e->e_phnum > MAX_HEADERS)
		return -ENOEXEC;
	for (unsigned int i = 0; i < e->e_phnum; i++) {
		Elf64_Phdr p;
		char note[1024];
		ssize_t n;

		if (pread(fd, &p, sizeof(p), (off_t)(e->e_phoff + i * sizeof(p))) != sizeof(p))
			return -ENOEXEC;
		h->interpreter |= p.p_type == PT_INTERP;
		if (p.p_type != PT_NOTE)
			continue;
		n = pread(fd, note, sizeof(note), (off_t)p.p_offset);
		h->go |= n > 0 && is_go_note(note, (size_t)n);
	}
	return 0;
}

static enum nb_program_kind kind_of(int fd, const Elf64_Ehdr *e)
{
	struct headers h = {false, false};

	if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_machine != OUR_MACHINE)
		return NB_PROGRAM_OTHER_ARCH;
	if (read_headers(fd, e, &h) != 0)
		return NB_PROGRAM_UNKNOWN;
	if (h.go)
		return NB_PROGRAM_GO;
	if (!h.interpreter)
		return NB_PROGRAM_STATIC;
	return is_privileged(fd) ? NB_PROGRAM_SETUID : NB_PROGRAM_DYNAMIC;
}

/* "#! /usr/bin/interpreter argument": the interpreter, in place. */
static char *interpreter(char *line)
{
	char *p = line + 2;

	line[strcspn(line, "\n")] = '\0';
	p += strspn(p, " \t");
	p[strcspn(p, " \t")] = '\0';
	return p;
}

static int look_at(const char *path, int depth, enum nb_program_kind *kind)
{
	char head[PATH_MAX];
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	*kind = NB_PROGRAM_UNKNOWN;
	/* What may be run but not read is run without us. */
	if (fd < 0)
		return 0;
	n = pread(fd, head, sizeof(head) - 1, 0);
	head[n > 0 ? n : 0] = '\0';
	if (n >= (ssize_t)sizeof(Elf64_Ehdr) && memcmp(head, ELFMAG, SELFMAG) == 0) {
		Elf64_Ehdr e;

		memcpy(&e, head, sizeof(e));
		*kind = kind_of(fd, &e);
	}
	close(fd);
	if (n > 2 && head[0] == '#' && head[1] == '!' && depth < SCRIPTS_DEEP)
		return look_at(interpreter(head), depth + 1, kind);
	return 0;
}

int nb_program_look(const char *name, enum nb_program_kind *kind)
{
	char path[PATH_MAX];
	const int err = search(name, path, sizeof(path));

	return err != 0 ? err : look_at(path, 0, kind);
}
