/* stripepack: reading packs. The C interface, which everything else stands on.
 *
 * Results. Functions that can fail return SPK_OK or one of the codes below, and fill *err where err
 * is not NULL; outputs are then untouched unless said otherwise. A failing call never ends the
 * process, prints, or leaves anything half done.
 *
 * Memory. The caller owns every buffer that is filled; nothing is allocated for the caller to free
 * but packs, iterators, loaders and batches, each with its own close. Pointers that are given out
 * belong to the pack (or the iterator) and live as long as it does, unless said otherwise. Names,
 * keys and class names may hold any bytes, so that they come with a size; they are followed by a
 * zero byte nevertheless.
 *
 * Threads. A pack never changes: any number of threads may use one at once. An iterator is for one
 * thread at a time. No thread is started before the first spk_read_many that needs one, and after
 * fork() a child goes on using the pack that its parent opened.
 *
 * Growth. Structs that begin with struct_size may get more members at their end: set struct_size to
 * sizeof before each call, and programs built with an older header go on working. Other structs and
 * all numbers are frozen.
 */
#ifndef STRIPEPACK_H_
#define STRIPEPACK_H_

#include <stdint.h>

#if defined(__GNUC__)
#define SPK_API __attribute__((visibility("default")))
#else
#define SPK_API
#endif

#ifdef __cplusplus
#define SPK_NOEXCEPT noexcept
extern "C" {
#else
#define SPK_NOEXCEPT
#endif

/* Of this header. spk_abi_version() is the library's: a program may run with any library whose
 * number is not smaller. */
#define SPK_ABI_VERSION 1u

/* Codes. SPK_END is no error: an iterator has come to its end. */
enum {
  SPK_END = -1,
  SPK_OK = 0,
  SPK_INVALID_ARGUMENT = 1, /* the caller's fault: wrong option, number out of range */
  SPK_NOT_THIS_FORMAT = 2,  /* not a pack */
  SPK_UNSUPPORTED = 3,      /* a pack of a newer version, or a feature that is not built in */
  SPK_DAMAGED = 4,          /* bytes contradict their checksum or each other */
  SPK_IO = 5,               /* the operating system said no; os_errno says why */
  SPK_NO_SPACE = 6,
  SPK_NOT_FOUND = 7, /* no such file, key, field or value */
  SPK_EXISTS = 8,
  SPK_NO_MEMORY = 9,
  SPK_CANCELLED = 10,
  SPK_PARTIAL = 11, /* some items of a call failed; each has its own code */
  SPK_BUSY = 12,
  SPK_MISMATCH = 13,
  SPK_INTERNAL = 14, /* a bug in stripepack */
  SPK_DENIED = 15    /* no permission */
};

#define SPK_NO_SHARD UINT32_MAX
#define SPK_NO_OFFSET UINT64_MAX

/* What went wrong, in the caller's memory. 256 bytes. */
typedef struct spk_error {
  uint32_t struct_size; /* sizeof(spk_error) */
  int32_t code;
  int32_t os_errno;  /* 0 where the operating system had no part in it */
  uint32_t shard;    /* number of the shard, or SPK_NO_SHARD */
  uint64_t offset;   /* in the file that the message names, or SPK_NO_OFFSET */
  char message[232]; /* UTF-8, ends with a zero byte: "PATH @OFFSET: what; what to do" */
} spk_error;

typedef struct spk_pack spk_pack;
typedef struct spk_iter spk_iter;

SPK_API uint32_t spk_abi_version(void) SPK_NOEXCEPT;
SPK_API const char* spk_version_string(void) SPK_NOEXCEPT;    /* "0.1.0" */
SPK_API const char* spk_code_name(int32_t code) SPK_NOEXCEPT; /* "damaged"; never NULL */

/* ---- Opening ----------------------------------------------------------------------------------
 */

enum {
  SPK_ENGINE_AUTO = 0,  /* mmap on local file systems, a pool of threads on network ones */
  SPK_ENGINE_PREAD = 1, /* pread in the calling thread */
  SPK_ENGINE_POOL = 2,  /* pread by threads */
  SPK_ENGINE_URING = 3, /* io_uring where it works, otherwise as POOL */
  SPK_ENGINE_MMAP = 4 /* refused on network file systems. Who cuts a shard that is mapped kills the
                         readers (SIGBUS); with the others they get SPK_DAMAGED */
};

typedef struct spk_open_options {
  uint32_t struct_size;    /* sizeof(spk_open_options) */
  uint32_t engine;         /* SPK_ENGINE_... */
  uint32_t threads;        /* of a pool; 0: chosen */
  uint32_t skip_checksums; /* not 0: bytes are not compared with their checksums when read */
  /* A directory with copies of some or all shards, as `stripepack stage` makes it: they are read
   * instead of the pack's own, which are read for whatever it does not have (nor has yet: a shard
   * is looked for when it is opened). It need not be there. NULL or "": none. */
  const char* cache;
} spk_open_options;

/* Opens the pack in the directory PATH. OPTIONS may be NULL. *OUT must be closed.
 * SPK_NOT_FOUND, SPK_NOT_THIS_FORMAT (the message says what it is instead), SPK_UNSUPPORTED,
 * SPK_DAMAGED. */
SPK_API int32_t spk_open(const char* path, const spk_open_options* options, spk_pack** out,
                         spk_error* err) SPK_NOEXCEPT;
/* NULL is allowed. No call may be running on the pack; iterators are closed before. */
SPK_API void spk_close(spk_pack* pack) SPK_NOEXCEPT;

/* The same, with the bytes of the pack's index.spki at hand, which are copied: one rank reads that
 * file and sends it to the others. The directory PATH is opened; nothing in it is looked at before
 * a sample is read. */
SPK_API int32_t spk_open_index(const char* path, const void* index, uint64_t size,
                               const spk_open_options* options, spk_pack** out,
                               spk_error* err) SPK_NOEXCEPT;

/* ---- What a pack is ---------------------------------------------------------------------------
 */

typedef struct spk_info {
  uint32_t struct_size; /* sizeof(spk_info) */
  uint32_t format_version;
  uint64_t sample_count;
  uint64_t reject_count; /* samples of the source that were not packed */
  uint64_t chunk_count;
  uint64_t chunk_bytes;
  uint64_t payload_bytes; /* of all blobs */
  uint32_t shard_count;
  uint32_t field_count;
  uint32_t class_count;
  uint32_t setting_count;
  char content_id[40]; /* 32 hex digits: names the content */
  char plan_id[40];    /* 32 hex digits: names source and options */
} spk_info;

SPK_API int32_t spk_get_info(const spk_pack* pack, spk_info* out, spk_error* err) SPK_NOEXCEPT;

enum { SPK_KIND_BLOB = 1, SPK_KIND_INT64 = 2, SPK_KIND_FLOAT32 = 3, SPK_KIND_FLOAT64 = 4 };

typedef struct spk_field {
  uint32_t struct_size; /* sizeof(spk_field) */
  uint32_t kind;        /* SPK_KIND_... */
  const char* name;     /* UTF-8 */
  uint32_t length;      /* numeric: values a sample, 0 where it differs; blobs: 1 */
  uint32_t reserved;
} spk_field;

/* Fields are numbered from 0. SPK_NOT_FOUND names the fields that there are. */
SPK_API int32_t spk_field_find(const spk_pack* pack, const char* name, uint32_t* field,
                               spk_error* err) SPK_NOEXCEPT;
SPK_API int32_t spk_field_info(const spk_pack* pack, uint32_t field, spk_field* out,
                               spk_error* err) SPK_NOEXCEPT;
/* Name of label NUMBER. */
SPK_API int32_t spk_class_name(const spk_pack* pack, uint64_t number, const char** name,
                               uint64_t* size, spk_error* err) SPK_NOEXCEPT;
/* How the pack was made: options and facts of the source, by name ... */
SPK_API int32_t spk_get_setting(const spk_pack* pack, const char* name, const char** value,
                                uint64_t* size, spk_error* err) SPK_NOEXCEPT;
/* ... and by number, 0 .. setting_count - 1. NAME ends with a zero byte. */
SPK_API int32_t spk_setting_at(const spk_pack* pack, uint32_t number, const char** name,
                               const char** value, uint64_t* value_size,
                               spk_error* err) SPK_NOEXCEPT;

/* ---- Samples: numbered 0 .. sample_count - 1 in storage order ---------------------------------
 */

/* Copies the key and a zero byte into BUFFER of CAPACITY bytes; *SIZE is the key's size, and is set
 * as well where CAPACITY is too small (SPK_INVALID_ARGUMENT). */
SPK_API int32_t spk_sample_key(const spk_pack* pack, uint64_t sample, char* buffer,
                               uint64_t capacity, uint64_t* size, spk_error* err) SPK_NOEXCEPT;
/* The sample with this key. Looks through all keys. SPK_NOT_FOUND. */
SPK_API int32_t spk_find_key(const spk_pack* pack, const char* key, uint64_t size, uint64_t* sample,
                             spk_error* err) SPK_NOEXCEPT;

/* Numbers of COUNT samples from BEGIN on, of a field of fixed length: OUT has room for COUNT x
 * length. Where a sample has no value, zeros; PRESENT, where not NULL, gets 1 or 0 a sample. */
SPK_API int32_t spk_get_ints(const spk_pack* pack, uint32_t field, uint64_t begin, uint64_t count,
                             int64_t* out, uint8_t* present, spk_error* err) SPK_NOEXCEPT;
SPK_API int32_t spk_get_floats(const spk_pack* pack, uint32_t field, uint64_t begin, uint64_t count,
                               double* out, uint8_t* present, spk_error* err) SPK_NOEXCEPT;
/* Numbers of one sample, of any length: *COUNT says how many there are, also where CAPACITY is too
 * small (SPK_INVALID_ARGUMENT). 0 where the sample has no value. */
SPK_API int32_t spk_get_sample_ints(const spk_pack* pack, uint32_t field, uint64_t sample,
                                    int64_t* out, uint64_t capacity, uint64_t* count,
                                    spk_error* err) SPK_NOEXCEPT;
SPK_API int32_t spk_get_sample_floats(const spk_pack* pack, uint32_t field, uint64_t sample,
                                      double* out, uint64_t capacity, uint64_t* count,
                                      spk_error* err) SPK_NOEXCEPT;

typedef struct spk_extent {
  uint32_t shard;
  uint32_t present; /* 0: the sample has no value in this field; the rest is 0 then */
  uint64_t offset;  /* in the shard's file */
  uint64_t size;
  uint64_t checksum; /* XXH3-64 */
} spk_extent;

/* Where the blobs of COUNT samples lie. Stops at the first error. */
SPK_API int32_t spk_locate(const spk_pack* pack, uint32_t field, const uint64_t* samples,
                           uint64_t count, spk_extent* out, spk_error* err) SPK_NOEXCEPT;
/* "shard-00007.spks" into BUFFER of CAPACITY bytes; 32 suffice. */
SPK_API int32_t spk_shard_name(const spk_pack* pack, uint32_t shard, char* buffer,
                               uint64_t capacity, spk_error* err) SPK_NOEXCEPT;

/* The path of the file that the shard is read from, in the pack or in the cache, into BUFFER of
 * CAPACITY bytes. *SIZE (NULL is allowed) is its length, and is set as well where CAPACITY is too
 * small for that and a NUL (SPK_INVALID_ARGUMENT). */
SPK_API int32_t spk_shard_path(const spk_pack* pack, uint32_t shard, char* buffer,
                               uint64_t capacity, uint64_t* size, spk_error* err) SPK_NOEXCEPT;

/* First samples of COUNT chunks from BEGIN on: chunk c holds those up to the first one of chunk
 * c + 1. What order and reading count in (docs/ORDER.md calls them units). */
SPK_API int32_t spk_chunk_samples(const spk_pack* pack, uint64_t begin, uint64_t count,
                                  uint64_t* first_samples, spk_error* err) SPK_NOEXCEPT;

/* Reads one blob into BUFFER of CAPACITY bytes. *SIZE is its size, and is set as well where
 * CAPACITY is too small (SPK_INVALID_ARGUMENT). SPK_NOT_FOUND where the sample has none. */
SPK_API int32_t spk_read(const spk_pack* pack, uint32_t field, uint64_t sample, void* buffer,
                         uint64_t capacity, uint64_t* size, spk_error* err) SPK_NOEXCEPT;

typedef struct spk_read_item {
  uint64_t sample;   /* in */
  void* buffer;      /* in */
  uint64_t capacity; /* in: bytes in BUFFER */
  uint64_t size;     /* out: of the blob, also where CAPACITY is too small */
  int32_t code;      /* out: as from spk_read */
  uint32_t reserved;
} spk_read_item;

/* Reads many blobs of one field in one call: sorted by place, neighbours together, many at a time.
 * SPK_PARTIAL: some failed; each item has its code, and err tells of the first. */
SPK_API int32_t spk_read_many(const spk_pack* pack, uint32_t field, spk_read_item* items,
                              uint64_t count, spk_error* err) SPK_NOEXCEPT;

/* ---- Parts: what one of many readers goes through ---------------------------------------------
 */

/* Part RANK of WORLD contiguous parts that differ by one sample at most: [*BEGIN, *END).
 * Arithmetic; nobody need be asked. */
SPK_API int32_t spk_part(const spk_pack* pack, uint64_t rank, uint64_t world, uint64_t* begin,
                         uint64_t* end, spk_error* err) SPK_NOEXCEPT;

/* Goes through that part in storage order by reading whole chunks. *OUT must be closed, before the
 * pack is. */
SPK_API int32_t spk_iter_open(const spk_pack* pack, uint64_t rank, uint64_t world, spk_iter** out,
                              spk_error* err) SPK_NOEXCEPT;
/* Goes to the next sample; SPK_END where there is none. Other codes are errors of the file system
 * or of memory, and the next call tries the same sample again. */
SPK_API int32_t spk_iter_next(spk_iter* iter, uint64_t* sample, spk_error* err) SPK_NOEXCEPT;
/* A blob of the sample at which the iterator stands; valid until its next call of either function.
 * SPK_NOT_FOUND where the sample has none. SPK_DAMAGED costs this sample alone: go on. */
SPK_API int32_t spk_iter_blob(spk_iter* iter, uint32_t field, const void** data, uint64_t* size,
                              spk_error* err) SPK_NOEXCEPT;
/* NULL is allowed. */
SPK_API void spk_iter_close(spk_iter* iter) SPK_NOEXCEPT;

/* ---- Loaders: a rank's batches, epoch by epoch ------------------------------------------------
 *
 * The order of an epoch (docs/ORDER.md) depends on the pack, order, seed, epoch, lanes and window,
 * and on nothing else: whatever the number of ranks, together they are given the same steps. Reads
 * run ahead in threads, in memory that is bounded.
 *
 * A loader is for one thread at a time; any number of loaders may use one pack, and the pack may be
 * closed before them. Its threads start with the first spk_loader_next. After fork() the child
 * makes loaders of its own; one that had begun to read is refused there.
 */

typedef struct spk_loader spk_loader;
typedef struct spk_batch spk_batch;

enum {
  SPK_ORDER_SHUFFLED = 0,   /* whole chunks are read, spread over the storage targets */
  SPK_ORDER_SEQUENTIAL = 1, /* storage order */
  SPK_ORDER_RANDOM = 2      /* a full shuffle of samples: many small reads */
};

/* What becomes of samples that do not fill a batch for every rank. */
enum {
  SPK_TAIL_DROP = 0, /* left out of this epoch */
  SPK_TAIL_PAD = 1,  /* filled with samples from the epoch's start, marked as repeated */
  SPK_TAIL_EXACT = 2 /* a short batch; some ranks may have none at all */
};

/* Whether reads pass by the page cache (O_DIRECT), where the file system can. AUTO: yes where the
 * cache cannot help, that is where whole chunks are read in a shuffled order, each by one loader
 * only (lanes divide by the ranks, one worker), the pack's chunks are more than half of the memory
 * that the cache may use (the least of what the system has available and of the limits of the
 * process's control groups), and the engine is not mmap. */
enum { SPK_DIRECT_AUTO = 0, SPK_DIRECT_ON = 1, SPK_DIRECT_OFF = 2 };

/* All zeros are the defaults, but for struct_size. */
typedef struct spk_loader_options {
  uint32_t struct_size; /* sizeof(spk_loader_options) */
  uint32_t order;       /* SPK_ORDER_... */
  uint64_t seed;
  uint64_t epoch;
  uint64_t rank;
  uint64_t world;        /* ranks; 0: 1 */
  uint64_t batch;        /* samples that this rank is given in a step; 0: 32 */
  uint32_t lanes;        /* 0: by the number of ranks */
  uint32_t window;       /* 0: likewise */
  uint32_t tail;         /* SPK_TAIL_... */
  uint32_t engine;       /* SPK_ENGINE_... */
  uint64_t worker;       /* of the processes that serve this rank */
  uint64_t workers;      /* 0: 1 */
  uint64_t memory_bytes; /* limit of the buffers; 0: chosen */
  uint32_t threads;      /* that read and check; 0: chosen */
  uint32_t direct;       /* SPK_DIRECT_... */
  uint32_t skip_checksums;
  uint32_t skip_damaged;     /* not 0: damaged samples are left out, and counted */
  const char* const* fields; /* names of the fields that are wanted; NULL: all */
  uint64_t field_count;
  const uint32_t* targets; /* storage target of each chunk; NULL: by the recorded map, see
                              spk_recorded_targets */
  uint64_t target_count;   /* entries of targets */
  const char* state;       /* as from spk_loader_state: goes on there, whatever the number of ranks.
                              Order, seed, epoch, lanes and window are the state's. NULL: begin */
  const char* node_group;  /* see below; NULL: "" */
  uint64_t node_memory_bytes; /* limit of the shared memory; 0: that of all the buffers, but at most
                                 half of what the page cache may use */
  uint32_t node_ranks;        /* ranks of this node that share; 0: none */
  uint32_t no_recorded_map;   /* not 0: where TARGETS is NULL, no map is used */
} spk_loader_options;

/* The storage target of each chunk, by a map that is recorded beside the pack (layout.json, which
 * `stripepack layout` writes). DIGEST: 16 hexadecimal digits, as behind "map=" in a loader's state;
 * NULL or "": the current map. *COUNT: the number of chunks, or 0 where there is no map, the
 * targets are not known, or DIGEST is all zeros. They go to OUT if CAPACITY suffices.
 *
 * A loader of order SHUFFLED that is given no targets uses the current map, one that resumes uses
 * the one that its state names. So every loader reads layout.json, and all ranks must find the same
 * there: do not refresh it while a run starts. A rank may read the targets for all and send them.
 * SPK_MISMATCH: no map with that digest is recorded. SPK_DAMAGED: layout.json makes no sense. */
SPK_API int32_t spk_recorded_targets(const spk_pack* pack, const char* digest, uint32_t* out,
                                     uint64_t capacity, uint64_t* count,
                                     spk_error* err) SPK_NOEXCEPT;

/* Sharing on a node. Chunks that several loaders of one node want (of node_ranks ranks with
 * `workers` loaders each) are read and checked by one of them, into memory that they share: a file
 * in /dev/shm whose name tells the user, the pack and node_group, so that runs that should not
 * share, or differ in how many there are, give different groups. The batches are the same as
 * without. Where each rank has lanes of its own and one worker, where samples are read singly
 * (other orders than SHUFFLED), and where files are mapped, nothing is shared. A loader for which
 * sharing does not work reads by itself; spk_loader_reading tells. Loaders may come and go at any
 * time, and may be killed; who leaves last removes the file, or where all are killed the next run
 * of that name. A child made by fork() must not look into batches that its parent has in hand. */

/* OPTIONS may be NULL. *OUT must be closed. SPK_INVALID_ARGUMENT names the option that cannot be
 * met; SPK_MISMATCH: the state is of another pack or target map. */
SPK_API int32_t spk_loader_open(const spk_pack* pack, const spk_loader_options* options,
                                spk_loader** out, spk_error* err) SPK_NOEXCEPT;
/* The next batch, which must be closed, or SPK_END at the end of the epoch. After an error the
 * loader stands where it stood: the next call tries the same batch again. SPK_DAMAGED names the
 * sample. SPK_BUSY: batches that are not closed yet hold all the memory. */
SPK_API int32_t spk_loader_next(spk_loader* loader, spk_batch** out, spk_error* err) SPK_NOEXCEPT;
/* Begins an epoch from its start, wherever the loader stands. A loader that has gone on from an
 * epoch to the next one reads what the following one begins with while its last batches are used.
 */
SPK_API int32_t spk_loader_start_epoch(spk_loader* loader, uint64_t epoch,
                                       spk_error* err) SPK_NOEXCEPT;
/* Where the run stands after the last batch that was given out: a line of text into BUFFER of
 * CAPACITY bytes; 256 suffice. The same on every rank after the same step. */
SPK_API int32_t spk_loader_state(const spk_loader* loader, char* buffer, uint64_t capacity,
                                 spk_error* err) SPK_NOEXCEPT;

typedef struct spk_loader_info {
  uint32_t struct_size; /* sizeof(spk_loader_info) */
  uint32_t order;       /* as resolved */
  uint32_t lanes;
  uint32_t window;
  uint64_t seed;
  uint64_t epoch;
  uint64_t consumed;   /* by all ranks together, in this epoch */
  uint64_t step_count; /* of this rank, from where the loader began to the end of the epoch */
  uint64_t steps;      /* given out; this and what follows over all epochs */
  uint64_t samples;
  uint64_t payload_bytes;
  uint64_t repeated; /* samples, to fill batches */
  uint64_t skipped;  /* damaged samples */
  uint64_t reads;    /* of files; none where they are mapped */
  uint64_t read_bytes;
  uint64_t wait_ns; /* for reads, in spk_loader_next */
  uint64_t memory_limit_bytes;
  uint64_t memory_peak_bytes;
  uint32_t engine;       /* that was chosen: SPK_ENGINE_POOL, _URING or _MMAP */
  uint32_t direct;       /* 1: reads pass by the page cache */
  uint64_t shared_reads; /* chunks read into memory that loaders of the node share */
  uint64_t shared_hits;  /* chunks that were there */
} spk_loader_info;

SPK_API int32_t spk_loader_get_info(const spk_loader* loader, spk_loader_info* out,
                                    spk_error* err) SPK_NOEXCEPT;
/* Why it reads as it does, in words, for people: "through the page cache: ...". Belongs to the
 * loader; empty for NULL. */
SPK_API const char* spk_loader_reading(const spk_loader* loader) SPK_NOEXCEPT;
/* What people should be told of: storage that is sorted by class, which a shuffled order with so
 * few lanes does not mix well, with an estimate. Found out at the first call, from the field
 * "label" of some samples, in about 10 ms where the index is large. Belongs to the loader; empty
 * where there is nothing to tell. */
SPK_API const char* spk_loader_warning(spk_loader* loader) SPK_NOEXCEPT;
/* NULL is allowed. Batches may be used and closed afterwards. */
SPK_API void spk_loader_close(spk_loader* loader) SPK_NOEXCEPT;

/* Batches never change and may be used by several threads at once. 0 and NULL for NULL. */
SPK_API uint64_t spk_batch_size(const spk_batch* batch) SPK_NOEXCEPT;
/* Numbers of the samples; valid until the batch is closed. */
SPK_API const uint64_t* spk_batch_samples(const spk_batch* batch) SPK_NOEXCEPT;
/* Their positions in the epoch's order, and 1 for each that is repeated. Either may be NULL; room
 * for spk_batch_size entries. */
SPK_API int32_t spk_batch_positions(const spk_batch* batch, uint64_t* positions, uint8_t* repeated,
                                    spk_error* err) SPK_NOEXCEPT;

typedef struct spk_span {
  const void* data; /* NULL: the sample has no value in this field */
  uint64_t size;
} spk_span;

/* Where the blobs of a field lie in memory, not copied: OUT has room for spk_batch_size spans,
 * which are valid until the batch is closed. */
SPK_API int32_t spk_batch_blobs(const spk_batch* batch, uint32_t field, spk_span* out,
                                spk_error* err) SPK_NOEXCEPT;
/* Copies them one after the other into BUFFER of CAPACITY bytes; blob i is at offsets[i] ..
 * offsets[i + 1], so that OFFSETS has one entry more than the batch. *SIZE is what all take, and is
 * set as well where CAPACITY is too small (SPK_INVALID_ARGUMENT). */
SPK_API int32_t spk_batch_copy(const spk_batch* batch, uint32_t field, void* buffer,
                               uint64_t capacity, uint64_t* offsets, uint64_t* size,
                               spk_error* err) SPK_NOEXCEPT;
/* As spk_get_ints and spk_get_floats, for the samples of the batch. */
SPK_API int32_t spk_batch_ints(const spk_batch* batch, uint32_t field, int64_t* out,
                               uint8_t* present, spk_error* err) SPK_NOEXCEPT;
SPK_API int32_t spk_batch_floats(const spk_batch* batch, uint32_t field, double* out,
                                 uint8_t* present, spk_error* err) SPK_NOEXCEPT;
/* NULL is allowed. */
SPK_API void spk_batch_close(spk_batch* batch) SPK_NOEXCEPT;

/* ---- Verifying --------------------------------------------------------------------------------
 */

enum {
  SPK_VERIFY_QUICK = 0, /* names, sizes, footers, index, manifest */
  SPK_VERIFY_FULL = 1   /* and every byte of every chunk */
};

typedef struct spk_damage {
  uint32_t struct_size;
  int32_t code;     /* SPK_DAMAGED, SPK_NOT_FOUND (missing), SPK_MISMATCH, SPK_IO, ... */
  const char* kind; /* "file", "footer", "chunk", "padding", "sample", "index", ... */
  const char* file; /* name within the pack */
  const char* key;  /* of the sample, or empty; ends with a zero byte */
  uint64_t key_size;
  const char* what; /* UTF-8 */
  uint32_t shard;   /* or SPK_NO_SHARD */
  uint32_t reserved;
  int64_t chunk;   /* number within the shard, or -1 */
  uint64_t offset; /* in the file, or SPK_NO_OFFSET */
  uint64_t samples_lost;
} spk_damage;

/* Called once for each damage, by one thread at a time. What it points to is gone afterwards. */
typedef void (*spk_damage_fn)(const spk_damage* damage, void* user);

/* Verifies the pack in the directory PATH, which need not be one that can be opened. THREADS 0: 1.
 * SPK_OK: nothing is wrong; SPK_DAMAGED: something is, and CALLBACK (may be NULL) was told of it.
 * *DAMAGES, where not NULL, is their number. Other codes: it could not be found out. */
SPK_API int32_t spk_verify(const char* path, uint32_t level, uint32_t threads,
                           spk_damage_fn callback, void* user, uint64_t* damages,
                           spk_error* err) SPK_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* STRIPEPACK_H_ */
