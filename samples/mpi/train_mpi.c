/* A trainer's loop with MPI: one rank reads the pack's index and sends it to the others; each rank
 * then reads nothing but the chunks of its own share.
 *
 *   mpirun -n W train_mpi PACK      with the mpirun of the MPI that it was built with: another one
 *                                   starts W programs that know nothing of each other
 *
 * The model is a stand-in (what all pictures weigh in bytes), added up over the ranks after each
 * step as gradients are. mpicc train_mpi.c -o train_mpi $(pkg-config --cflags --libs stripepack) */
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <stripepack/stripepack.h>

enum { kBatch = 8, kEpochs = 2 };

/* An error of one rank ends all: the others would wait for it for ever. */
static void give_up(const char* what) {
  fprintf(stderr, "train_mpi: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int32_t code, const spk_error* error) {
  if (code != SPK_OK) give_up(error->message);
}

/* The bytes of PACK/index.spki, to be freed; NULL where they cannot be read. */
static void* read_index(const char* pack, uint64_t* size) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s/index.spki", pack) >= (int)sizeof path) return NULL;
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  void* index = NULL;
  long end = -1;
  if (fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) > 0 && fseek(file, 0, SEEK_SET) == 0) {
    index = malloc((size_t)end);
  }
  if (index != NULL && fread(index, 1, (size_t)end, file) != (size_t)end) {
    free(index);
    index = NULL;
  }
  fclose(file);
  *size = end > 0 ? (uint64_t)end : 0;
  return index;
}

/* Opens the pack on all ranks; one of them reads the index. */
static spk_pack* open_everywhere(const char* path, int rank) {
  uint64_t size = 0;
  void* index = rank == 0 ? read_index(path, &size) : NULL;
  if (index == NULL) size = 0;
  MPI_Bcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (size ==
      0) { /* All know of it, none need be aborted: mpirun may lose what an aborted rank said. */
    if (rank == 0) fprintf(stderr, "train_mpi: cannot read the index: %s/index.spki\n", path);
    MPI_Finalize();
    exit(1);
  }
  if (rank != 0 && (index = malloc(size)) == NULL) give_up("out of memory");
  for (uint64_t at = 0; at < size;) { /* a count of MPI is an int */
    const uint64_t left = size - at;
    const int count = left < (1u << 30) ? (int)left : 1 << 30;
    MPI_Bcast((char*)index + at, count, MPI_BYTE, 0, MPI_COMM_WORLD);
    at += (uint64_t)count;
  }
  spk_error error = {.struct_size = sizeof error};
  spk_pack* pack = NULL;
  check(spk_open_index(path, index, size, NULL, &pack, &error), &error);
  free(index);
  return pack;
}

/* What a batch adds to the model. NULL: nothing. */
static void weigh(const spk_batch* batch, uint32_t image, uint64_t sums[2]) {
  spk_span pictures[kBatch];
  spk_error error = {.struct_size = sizeof error};
  sums[0] = sums[1] = 0;
  if (batch == NULL) return;
  check(spk_batch_blobs(batch, image, pictures, &error), &error);
  sums[0] = spk_batch_size(batch);
  for (uint64_t i = 0; i < sums[0]; ++i) sums[1] += pictures[i].size;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, world = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  if (argc != 2) give_up("usage: mpirun -n W train_mpi PACK");
  spk_pack* pack = open_everywhere(argv[1], rank);

  spk_error error = {.struct_size = sizeof error};
  spk_loader_options options = {.struct_size = sizeof options};
  options.rank = (uint64_t)rank;
  options.world = (uint64_t)world;
  options.batch = kBatch;
  options.seed = 1;
  options.tail = SPK_TAIL_EXACT;
  spk_loader* loader = NULL;
  uint32_t image = 0;
  check(spk_field_find(pack, "image", &image, &error), &error);
  check(spk_loader_open(pack, &options, &loader, &error), &error);

  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    if (epoch > 0) check(spk_loader_start_epoch(loader, epoch, &error), &error);
    uint64_t model[2] = {0, 0}; /* pictures and bytes */
    uint64_t steps = 0;
    for (;; ++steps) {
      spk_batch* batch = NULL;
      const int32_t code = spk_loader_next(loader, &batch, &error);
      if (code != SPK_END) check(code, &error);
      uint64_t sums[2];
      weigh(batch, image, sums);
      spk_batch_close(batch);
      /* A rank may have no sample in the last step: it takes part all the same. */
      MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
      if (sums[0] == 0) break;
      model[0] += sums[0];
      model[1] += sums[1];
    }
    if (rank == 0) {
      printf("epoch %" PRIu64 ": %d ranks, %" PRIu64 " steps, %" PRIu64 " pictures, %" PRIu64
             " bytes\n",
             epoch, world, steps, model[0], model[1]);
    }
  }
  spk_loader_close(loader);
  spk_close(pack);
  MPI_Finalize();
  return 0;
}
