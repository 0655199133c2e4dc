/* The plugin, built by an MPI's own compiler wrapper. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "team/plugin_api.h"

enum { kStopTag = 7 };

static int rank_;
static int size_;
static MPI_Comm comm_;
static MPI_Request gather_;
static MPI_Request* stops_; /* one for each rank, null until send_stop */
static char stop_byte_ = 1;

static int start(int* rank, int* size) {
  int given = 0;
  int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
  if (error != MPI_SUCCESS) return error;
  if (given < MPI_THREAD_SERIALIZED) return MPI_ERR_OTHER;
  error = MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  if (error != MPI_SUCCESS) return error;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
  *rank = rank_;
  *size = size_;
  gather_ = MPI_REQUEST_NULL;
  return 0;
}

static int begin_gather(const void* mine, int bytes, void* all) {
  return MPI_Iallgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm_, &gather_);
}

static int begin_gather_each(const void* mine, const int* counts, const int* places, void* all) {
  return MPI_Iallgatherv(mine, counts[rank_], MPI_BYTE, all, counts, places, MPI_BYTE, comm_,
                         &gather_);
}

static int test_gather(int* done) { return MPI_Test(&gather_, done, MPI_STATUS_IGNORE); }

static int send_stop(void) {
  int rank;
  stops_ = malloc(sizeof *stops_ * (size_t)size_);
  if (stops_ == NULL) return MPI_ERR_NO_MEM;
  for (rank = 0; rank < size_; ++rank) {
    int error;
    stops_[rank] = MPI_REQUEST_NULL;
    if (rank == rank_) continue;
    error = MPI_Isend(&stop_byte_, 1, MPI_BYTE, rank, kStopTag, comm_, &stops_[rank]);
    if (error != MPI_SUCCESS) return error;
  }
  return 0;
}

static int receive_stop(int* came) {
  MPI_Status status;
  char byte;
  int error = MPI_Iprobe(MPI_ANY_SOURCE, kStopTag, comm_, came, &status);
  if (error != MPI_SUCCESS || !*came) return error;
  return MPI_Recv(&byte, 1, MPI_BYTE, status.MPI_SOURCE, kStopTag, comm_, MPI_STATUS_IGNORE);
}

static int finish(void) {
  if (stops_ != NULL) {
    for (int rank = 0; rank < size_; ++rank) MPI_Wait(&stops_[rank], MPI_STATUS_IGNORE);
    free(stops_);
    stops_ = NULL;
  }
  MPI_Comm_free(&comm_);
  return MPI_Finalize();
}

static void error_text(int error, char* text, int bytes) {
  char all[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(error, all, &length) != MPI_SUCCESS) length = 0;
  all[length < MPI_MAX_ERROR_STRING ? length : MPI_MAX_ERROR_STRING - 1] = '\0';
  snprintf(text, (size_t)bytes, "%s", length == 0 ? "an error that MPI does not name" : all);
}

static void library(char* text, int bytes) {
  char all[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(all, &length);
  snprintf(text, (size_t)bytes, "%.*s", (int)strcspn(all, "\n"), all);
}

__attribute__((visibility("default"))) const SpkTeamPlugin* stripepack_team_plugin(void);
const SpkTeamPlugin* stripepack_team_plugin(void) {
  static const SpkTeamPlugin kPlugin = {SPK_TEAM_PLUGIN_VERSION,
                                        start,
                                        begin_gather,
                                        begin_gather_each,
                                        test_gather,
                                        send_stop,
                                        receive_stop,
                                        finish,
                                        error_text,
                                        library};
  return &kPlugin;
}
