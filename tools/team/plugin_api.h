/* What the program calls of MPI, as a table of functions that a plugin gives. The program itself is
 * linked to no MPI, so that one build of it serves every implementation: a plugin is small, built
 * once for each MPI, and loaded only where a launcher started several ranks.
 *
 * All calls come one at a time (MPI_THREAD_SERIALIZED). Each yields 0, or an error of MPI for
 * error_text. */
#ifndef STRIPEPACK_TEAM_PLUGIN_API_H_
#define STRIPEPACK_TEAM_PLUGIN_API_H_

#define SPK_TEAM_PLUGIN_VERSION 1
#define SPK_TEAM_PLUGIN_SYMBOL "stripepack_team_plugin"

typedef struct SpkTeamPlugin {
  int version;
  /* MPI_Init_thread. */
  int (*start)(int* rank, int* size);
  /* Every rank gives BYTES bytes, each as many; ALL takes those of all ranks, in order. */
  int (*begin_gather)(const void* mine, int bytes, void* all);
  /* Rank i gives counts[i] bytes, which are placed at all + places[i]. */
  int (*begin_gather_each)(const void* mine, const int* counts, const int* places, void* all);
  /* *done: what was begun last is complete. */
  int (*test_gather)(int* done);
  /* Tells every other rank, without waiting for it. Once at most. */
  int (*send_stop)(void);
  /* *came: another rank has told this one, and this is the first that is seen of it. */
  int (*receive_stop)(int* came);
  /* MPI_Finalize. Every stop that was sent must have been received. */
  int (*finish)(void);
  void (*error_text)(int error, char* text, int bytes);
  /* "MPICH Version: 4.0.2 ...", its first line. */
  void (*library)(char* text, int bytes);
} SpkTeamPlugin;

typedef const SpkTeamPlugin* (*SpkTeamPluginFunction)(void);

#endif /* STRIPEPACK_TEAM_PLUGIN_API_H_ */
