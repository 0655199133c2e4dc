/* Loaded before the C library (LD_PRELOAD), makes chosen calls of a program fail, or kills the
 * program at one of them, so that tests can try every point at which a disk or a machine may die.
 *
 *   FAULTY_IO="call=fsync;nth=3;errno=EIO;path=shard-"
 *       The third fsync of a file whose path contains "shard-" returns -1 with EIO; nothing is
 * done. call    one of fsync fdatasync write pwrite pwritev close rename openat unlink mkdir
 * truncate fallocate, "sync" (both syncs), "any", or several with commas: "pwrite,pwritev".
 *             Variants count as one: open, creat and open64 are openat; writev is write; pwrite64
 * and pwritev2 are what they vary; renameat, renameat2 are rename; unlinkat is unlink; and
 *             posix_fallocate is not seen. Opens that cannot write are not counted. flock is seen
 *             where it is named, not by "any".
 *     path    part of the path of the file (rename: of either name); left out: every file. A path
 *             relative to a directory descriptor is seen with that directory's path before it.
 *     nth     which matching call, from 1; 0 or left out: every one.
 *     errno   a name below or a number; left out: EIO.
 *     action  "fail" (default); "kill": SIGKILL instead of the call; "kill-after": SIGKILL after
 * the call was done; "short": writes do half of what was asked (at least a byte, if possible);
 *             "stop": SIGSTOP before the call, which is done once the program is continued;
 * "stop-after": the same after the call.
 *   FAULTY_IO_COUNT=FILE
 *       At exit the number of matching calls is written to FILE, so that a test can go through all
 *       of them. Without nth nothing fails then.
 *
 * Calls are counted in the order in which threads make them: with one thread the count is exact.
 * Counts are per process; a child made by fork() goes on from its parent's. System calls made
 * without the C library (io_uring) are not seen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum action { NOTHING, FAIL, KILL, KILL_AFTER, SHORT, STOP, STOP_AFTER };

static struct {
  char calls[256]; /* ",fsync,pwrite," */
  char path[256];
  long nth;
  int error;
  enum action action;
  char count_file[PATH_MAX];
} plan;
static atomic_long seen;

static const struct {
  const char* name;
  int number;
} kErrors[] = {
    {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EROFS", EROFS},
    {"EINTR", EINTR},   {"EACCES", EACCES}, {"EPERM", EPERM},   {"EFBIG", EFBIG},
    {"ESTALE", ESTALE}, {"ENOMEM", ENOMEM}, {"EMFILE", EMFILE}, {"EINVAL", EINVAL},
    {"ENOSYS", ENOSYS}, {"EEXIST", EEXIST}, {"ENOENT", ENOENT}, {"EOPNOTSUPP", EOPNOTSUPP}};

/* A test with a misspelt plan must not pass. */
static void bad_plan(const char* what) {
  dprintf(2, "faulty_io: bad FAULTY_IO: %s\n", what);
  _exit(99);
}

static void set_option(const char* key, const char* value) {
  if (strcmp(key, "call") == 0) {
    snprintf(plan.calls, sizeof plan.calls, ",%s,", value);
  } else if (strcmp(key, "path") == 0) {
    snprintf(plan.path, sizeof plan.path, "%s", value);
  } else if (strcmp(key, "nth") == 0) {
    plan.nth = strtol(value, NULL, 10);
  } else if (strcmp(key, "errno") == 0) {
    plan.error = (int)strtol(value, NULL, 10);
    for (size_t i = 0; i < sizeof kErrors / sizeof *kErrors; ++i) {
      if (strcmp(value, kErrors[i].name) == 0) plan.error = kErrors[i].number;
    }
    if (plan.error <= 0) bad_plan(value);
  } else if (strcmp(key, "action") == 0) {
    if (strcmp(value, "fail") == 0)
      plan.action = FAIL;
    else if (strcmp(value, "kill") == 0)
      plan.action = KILL;
    else if (strcmp(value, "stop") == 0)
      plan.action = STOP;
    else if (strcmp(value, "stop-after") == 0)
      plan.action = STOP_AFTER;
    else if (strcmp(value, "kill-after") == 0)
      plan.action = KILL_AFTER;
    else if (strcmp(value, "short") == 0)
      plan.action = SHORT;
    else
      bad_plan(value);
  } else {
    bad_plan(key);
  }
}

__attribute__((constructor)) static void read_plan(void) {
  const char* text = getenv("FAULTY_IO");
  const char* count_file = getenv("FAULTY_IO_COUNT");
  if (text == NULL) return;
  char copy[1024];
  if (strlen(text) >= sizeof copy) bad_plan("too long");
  strcpy(copy, text);
  plan.action = FAIL;
  plan.error = EIO;
  char* rest = NULL;
  for (char* part = strtok_r(copy, ";", &rest); part; part = strtok_r(NULL, ";", &rest)) {
    char* equals = strchr(part, '=');
    if (equals == NULL) bad_plan(part);
    *equals = '\0';
    set_option(part, equals + 1);
  }
  if (plan.calls[0] == '\0') bad_plan("no call=");
  if (count_file != NULL) {
    snprintf(plan.count_file, sizeof plan.count_file, "%s", count_file);
    if (plan.nth == 0) plan.action = NOTHING;
  }
}

/* Raw system calls, so that the report itself is not counted. */
__attribute__((destructor)) static void write_count(void) {
  if (plan.count_file[0] == '\0') return;
  const int fd =
      (int)syscall(SYS_openat, AT_FDCWD, plan.count_file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  char text[32];
  const int size = snprintf(text, sizeof text, "%ld\n", atomic_load(&seen));
  if (fd < 0 || syscall(SYS_write, fd, text, (size_t)size) != size) _exit(99);
  syscall(SYS_close, fd);
}

static int is_planned(const char* call) {
  char wanted[32];
  snprintf(wanted, sizeof wanted, ",%s,", call);
  if (strstr(plan.calls, wanted) || strstr(plan.calls, ",any,")) return 1;
  return strstr(wanted, "sync,") != NULL && strstr(plan.calls, ",sync,") != NULL;
}

static void path_of_fd(int fd, char path[PATH_MAX]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, path, (size_t)PATH_MAX - 1);
  path[size > 0 ? size : 0] = '\0';
}

static int name_matches(int dir, const char* name) {
  if (plan.path[0] == '\0' || strstr(name, plan.path)) return 1;
  char path[2 * PATH_MAX];
  if (name[0] == '/' || dir == AT_FDCWD) return 0;
  path_of_fd(dir, path);
  const size_t length = strlen(path);
  snprintf(path + length, sizeof path - length, "/%s", name);
  return strstr(path, plan.path) != NULL;
}

static int fd_matches(int fd) {
  if (plan.path[0] == '\0') return 1;
  char path[PATH_MAX];
  path_of_fd(fd, path);
  return strstr(path, plan.path) != NULL;
}

/* What is to happen to a matching call; counts it. */
static enum action next_action(void) {
  const long number = atomic_fetch_add(&seen, 1) + 1;
  if (plan.action == NOTHING || (plan.nth != 0 && number != plan.nth)) return NOTHING;
  if (plan.action == KILL) syscall(SYS_kill, (pid_t)syscall(SYS_getpid), SIGKILL);
  if (plan.action == STOP) syscall(SYS_kill, (pid_t)syscall(SYS_getpid), SIGSTOP);
  if (plan.action == FAIL) errno = plan.error;
  return plan.action;
}

static void kill_if(enum action action) {
  if (action == KILL_AFTER) syscall(SYS_kill, (pid_t)syscall(SYS_getpid), SIGKILL);
  if (action == STOP_AFTER) syscall(SYS_kill, (pid_t)syscall(SYS_getpid), SIGSTOP);
}

/* errno must survive looking for the path. */
static enum action on_fd(const char* call, int fd) {
  if (!is_planned(call)) return NOTHING;
  const int before = errno;
  const int matches = fd_matches(fd);
  errno = before;
  return matches ? next_action() : NOTHING;
}

static enum action on_name(const char* call, int dir, const char* name) {
  if (!is_planned(call)) return NOTHING;
  const int before = errno;
  const int matches = name_matches(dir, name);
  errno = before;
  return matches ? next_action() : NOTHING;
}

/* The next definition of `name`: the C library's. */
#define NEXT(name)               \
  static __typeof__(&name) next; \
  if (next == NULL) next = (__typeof__(next))dlsym(RTLD_NEXT, #name)

/* Does the call under its plan, and returns from the function that uses it. */
#define RUN(type, decision, real)          \
  do {                                     \
    const enum action action = (decision); \
    if (action == FAIL) return (type)-1;   \
    const type result = (real);            \
    kill_if(action);                       \
    return result;                         \
  } while (0)

int fsync(int fd) {
  NEXT(fsync);
  RUN(int, on_fd("fsync", fd), next(fd));
}
int fdatasync(int fd) {
  NEXT(fdatasync);
  RUN(int, on_fd("fdatasync", fd), next(fd));
}

int flock(int fd, int operation) {
  NEXT(flock);
  if (strstr(plan.calls, ",flock,") == NULL) return next(fd, operation);
  RUN(int, on_fd("flock", fd), next(fd, operation));
}

/* As the kernel does, a close that fails has closed all the same. */
int close(int fd) {
  NEXT(close);
  const enum action action = on_fd("close", fd);
  const int result = next(fd);
  kill_if(action);
  if (action != FAIL) return result;
  errno = plan.error;
  return -1;
}

static size_t shorten(enum action action, size_t size) {
  return action == SHORT && size > 1 ? size / 2 : size;
}

#define RUN_WRITE(call, fd, size, real)         \
  do {                                          \
    const enum action action = on_fd(call, fd); \
    if (action == FAIL) return -1;              \
    size = shorten(action, size);               \
    const ssize_t result = (real);              \
    kill_if(action);                            \
    return result;                              \
  } while (0)

ssize_t write(int fd, const void* data, size_t size) {
  NEXT(write);
  RUN_WRITE("write", fd, size, next(fd, data, size));
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  NEXT(pwrite);
  RUN_WRITE("pwrite", fd, size, next(fd, data, size, offset));
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  NEXT(pwrite64);
  RUN_WRITE("pwrite", fd, size, next(fd, data, size, offset));
}

/* Half of the pieces, or half of the only one. */
static int shorten_pieces(enum action action, const struct iovec* pieces, int count,
                          struct iovec* only) {
  *only = pieces[0];
  if (action == SHORT && count == 1) only->iov_len = shorten(action, only->iov_len);
  return action == SHORT && count > 1 ? count / 2 : count;
}

#define RUN_PIECES(call, fd, real)                                       \
  do {                                                                   \
    const enum action action = count > 0 ? on_fd(call, fd) : NOTHING;    \
    if (action == FAIL) return -1;                                       \
    struct iovec only;                                                   \
    if (count > 0) count = shorten_pieces(action, pieces, count, &only); \
    if (count == 1) pieces = &only;                                      \
    const ssize_t result = (real);                                       \
    kill_if(action);                                                     \
    return result;                                                       \
  } while (0)

ssize_t writev(int fd, const struct iovec* pieces, int count) {
  NEXT(writev);
  RUN_PIECES("write", fd, next(fd, pieces, count));
}
ssize_t pwritev(int fd, const struct iovec* pieces, int count, off_t offset) {
  NEXT(pwritev);
  RUN_PIECES("pwritev", fd, next(fd, pieces, count, offset));
}
ssize_t pwritev64(int fd, const struct iovec* pieces, int count, off64_t offset) {
  NEXT(pwritev64);
  RUN_PIECES("pwritev", fd, next(fd, pieces, count, offset));
}
ssize_t pwritev2(int fd, const struct iovec* pieces, int count, off_t offset, int flags) {
  NEXT(pwritev2);
  RUN_PIECES("pwritev", fd, next(fd, pieces, count, offset, flags));
}
ssize_t pwritev64v2(int fd, const struct iovec* pieces, int count, off64_t offset, int flags) {
  NEXT(pwritev64v2);
  RUN_PIECES("pwritev", fd, next(fd, pieces, count, offset, flags));
}

int ftruncate(int fd, off_t size) {
  NEXT(ftruncate);
  RUN(int, on_fd("truncate", fd), next(fd, size));
}
int ftruncate64(int fd, off64_t size) {
  NEXT(ftruncate64);
  RUN(int, on_fd("truncate", fd), next(fd, size));
}
int fallocate(int fd, int mode, off_t offset, off_t size) {
  NEXT(fallocate);
  RUN(int, on_fd("fallocate", fd), next(fd, mode, offset, size));
}
int fallocate64(int fd, int mode, off64_t offset, off64_t size) {
  NEXT(fallocate64);
  RUN(int, on_fd("fallocate", fd), next(fd, mode, offset, size));
}

/* Either name may match, but it is one call. */
static enum action on_rename(int old_dir, const char* old_name, int new_dir, const char* new_name) {
  if (!is_planned("rename")) return NOTHING;
  const int before = errno;
  const int matches = name_matches(old_dir, old_name) || name_matches(new_dir, new_name);
  errno = before;
  return matches ? next_action() : NOTHING;
}

int rename(const char* old_name, const char* new_name) {
  NEXT(rename);
  RUN(int, on_rename(AT_FDCWD, old_name, AT_FDCWD, new_name), next(old_name, new_name));
}
int renameat(int old_dir, const char* old_name, int new_dir, const char* new_name) {
  NEXT(renameat);
  RUN(int, on_rename(old_dir, old_name, new_dir, new_name),
      next(old_dir, old_name, new_dir, new_name));
}
int renameat2(int old_dir, const char* old_name, int new_dir, const char* new_name,
              unsigned flags) {
  NEXT(renameat2);
  RUN(int, on_rename(old_dir, old_name, new_dir, new_name),
      next(old_dir, old_name, new_dir, new_name, flags));
}

int unlink(const char* name) {
  NEXT(unlink);
  RUN(int, on_name("unlink", AT_FDCWD, name), next(name));
}
int unlinkat(int dir, const char* name, int flags) {
  NEXT(unlinkat);
  RUN(int, on_name("unlink", dir, name), next(dir, name, flags));
}
int mkdir(const char* name, mode_t mode) {
  NEXT(mkdir);
  RUN(int, on_name("mkdir", AT_FDCWD, name), next(name, mode));
}
int mkdirat(int dir, const char* name, mode_t mode) {
  NEXT(mkdirat);
  RUN(int, on_name("mkdir", dir, name), next(dir, name, mode));
}

static enum action on_open(int dir, const char* name, int flags) {
  if ((flags & O_ACCMODE) == O_RDONLY && (flags & O_CREAT) == 0) return NOTHING;
  return on_name("openat", dir, name);
}

/* The mode is there only where a file may be made. */
#define MODE_ARGUMENT                                          \
  mode_t mode = 0;                                             \
  if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
    va_list arguments;                                         \
    va_start(arguments, flags);                                \
    mode = va_arg(arguments, mode_t);                          \
    va_end(arguments);                                         \
  }

int open(const char* name, int flags, ...) {
  NEXT(open);
  MODE_ARGUMENT
  RUN(int, on_open(AT_FDCWD, name, flags), next(name, flags, mode));
}
int open64(const char* name, int flags, ...) {
  NEXT(open64);
  MODE_ARGUMENT
  RUN(int, on_open(AT_FDCWD, name, flags), next(name, flags, mode));
}
int openat(int dir, const char* name, int flags, ...) {
  NEXT(openat);
  MODE_ARGUMENT
  RUN(int, on_open(dir, name, flags), next(dir, name, flags, mode));
}
int openat64(int dir, const char* name, int flags, ...) {
  NEXT(openat64);
  MODE_ARGUMENT
  RUN(int, on_open(dir, name, flags), next(dir, name, flags, mode));
}
int creat(const char* name, mode_t mode) { return open(name, O_WRONLY | O_CREAT | O_TRUNC, mode); }
