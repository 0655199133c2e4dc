/* A trainer's loop in C: epochs of shuffled batches, read ahead, and a checkpoint to go on from.
 *
 *   train_loader PACK [RANK WORLD [STATE]]
 *
 * Stops in the middle of the second epoch and goes on with a new loader, as a job does that was
 * stopped; with STATE, as the first run printed it, with any number of ranks. The model is a
 * stand-in (what all pictures weigh in bytes): step() is where a decoder and a model go.
 * cc train_loader.c -o train_loader $(pkg-config --cflags --libs stripepack) */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stripepack/stripepack.h>

enum { kBatch = 8, kEpochs = 2 };

typedef struct totals {
  uint64_t pictures;
  uint64_t bytes;
  int64_t labels; /* their sum */
} totals;

/* The pictures lie in the loader's buffers, and stay there until the batch is closed. */
static void step(totals* model, const spk_span* pictures, const int64_t* labels, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    model->bytes += pictures[i].size;
    model->labels += labels[i];
  }
  model->pictures += count;
}

static int fail(const spk_error* error) {
  fprintf(stderr, "train_loader: %s\n", error->message);
  return 1;
}

/* Up to MOST_STEPS steps; *STEPS is how many there were. */
static int train(const spk_pack* pack, spk_loader* loader, uint64_t most_steps, totals* model,
                 uint64_t* steps) {
  spk_error error = {.struct_size = sizeof error};
  spk_span pictures[kBatch];
  int64_t labels[kBatch];
  uint32_t image = 0, label = 0;
  if (spk_field_find(pack, "image", &image, &error) != SPK_OK ||
      spk_field_find(pack, "label", &label, &error) != SPK_OK) {
    return fail(&error);
  }
  for (*steps = 0; *steps < most_steps; ++*steps) {
    spk_batch* batch = NULL;
    const int32_t code = spk_loader_next(loader, &batch, &error);
    if (code == SPK_END) return 0;
    if (code != SPK_OK) return fail(&error);
    int32_t read = spk_batch_blobs(batch, image, pictures, &error);
    if (read == SPK_OK) read = spk_batch_ints(batch, label, labels, NULL, &error);
    if (read == SPK_OK) step(model, pictures, labels, spk_batch_size(batch));
    spk_batch_close(batch);
    if (read != SPK_OK) return fail(&error);
  }
  return 0;
}

/* Epochs from where OPTIONS says on. Once in the midst of the second one, the loader is closed and
 * another one goes on from its state. */
static int run(const spk_pack* pack, spk_loader_options* options, totals* model) {
  spk_error error = {.struct_size = sizeof error};
  char state[256];
  spk_loader* loader = NULL;
  if (spk_loader_open(pack, options, &loader, &error) != SPK_OK) return fail(&error);
  spk_loader_info info = {.struct_size = sizeof info};
  int result = spk_loader_get_info(loader, &info, &error) == SPK_OK ? 0 : fail(&error);
  uint64_t epoch = info.epoch;
  int may_stop = options->state == NULL;
  while (result == 0 && epoch < kEpochs) {
    const uint64_t most = may_stop && epoch == 1 ? info.step_count / 2 : UINT64_MAX;
    uint64_t steps = 0;
    result = train(pack, loader, most, model, &steps);
    if (result != 0) break;
    if (most != UINT64_MAX) { /* a checkpoint, and a new start from it */
      if (spk_loader_state(loader, state, sizeof state, &error) != SPK_OK) result = fail(&error);
      if (options->rank == 0) printf("%s\n", state);
      spk_loader_close(loader);
      loader = NULL;
      options->state = state;
      may_stop = 0;
      if (result == 0 && spk_loader_open(pack, options, &loader, &error) != SPK_OK) {
        result = fail(&error);
      }
      continue;
    }
    if (++epoch < kEpochs && spk_loader_start_epoch(loader, epoch, &error) != SPK_OK) {
      result = fail(&error);
    }
  }
  spk_loader_close(loader);
  return result;
}

/* RANK or WORLD: a whole number and nothing else, or the program ends. */
static uint64_t number(const char* text) {
  char* end = NULL;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || errno != 0) {
    fprintf(stderr, "train_loader: '%s' is not a whole number\n", text);
    exit(2);
  }
  return value;
}

int main(int argc, char** argv) {
  const int help = argc == 2 && strcmp(argv[1], "--help") == 0;
  if (help || (argc != 2 && argc != 4 && argc != 5)) {
    fprintf(help ? stdout : stderr, "usage: train_loader PACK [RANK WORLD [STATE]]\n");
    return help ? 0 : 2;
  }
  spk_error error = {.struct_size = sizeof error};
  spk_pack* pack = NULL;
  if (spk_open(argv[1], NULL, &pack, &error) != SPK_OK) return fail(&error);
  spk_loader_options options = {.struct_size = sizeof options};
  options.rank = argc > 2 ? number(argv[2]) : 0;
  options.world = argc > 3 ? number(argv[3]) : 1;
  options.batch = kBatch;
  options.seed = 1;
  options.tail = SPK_TAIL_EXACT; /* every picture once an epoch */
  options.state = argc > 4 ? argv[4] : NULL;
  totals trained = {0};
  const int result = run(pack, &options, &trained);
  if (result == 0) {
    printf("%" PRIu64 " pictures, %" PRIu64 " bytes, labels %" PRId64 "\n", trained.pictures,
           trained.bytes, trained.labels);
  }
  spk_close(pack);
  return result;
}
