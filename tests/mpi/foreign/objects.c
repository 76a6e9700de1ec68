/* A program that is compiled with the header of another MPI library, and runs on Ferry's library
 * with its binary interface: communicators, attributes, topologies, windows.
 */
#include "tests/mpi/foreign/interface.h"

/* ---- Communicators, attributes --------------------------------------------------------------- */

static int copies, deletions;

static int copy_value(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
  CHECK(comm == MPI_COMM_SELF && keyval != MPI_KEYVAL_INVALID && extra == &copies);
  *(void**)out = (char*)in + 1;
  *flag = 1;
  ++copies;
  return MPI_SUCCESS;
}

static int delete_value(MPI_Comm comm, int keyval, void* value, void* extra) {
  CHECK(comm != MPI_COMM_NULL && keyval != MPI_KEYVAL_INVALID && extra == &copies);
  CHECK(value != NULL);
  ++deletions;
  return MPI_SUCCESS;
}

static int refuses = 1;

static int refuse_deletion(MPI_Comm comm, int keyval, void* value, void* extra) {
  (void)comm, (void)keyval, (void)value, (void)extra;
  return refuses ? MPI_ERR_TOPOLOGY : MPI_SUCCESS;
}

static void attributes(void) {
  step = "attributes";
  int keyval = MPI_KEYVAL_INVALID, dup_keyval, flag = 0;
  static char bytes[4];
  char* value = NULL;
  MPI_Comm copy;
  OK(MPI_Comm_create_keyval(copy_value, delete_value, &keyval, &copies));
  OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &dup_keyval, NULL));
  OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &bytes[0]));
  OK(MPI_Comm_set_attr(MPI_COMM_SELF, dup_keyval, &bytes[2]));
  OK(MPI_Comm_dup(MPI_COMM_SELF, &copy));
  OK(MPI_Comm_get_attr(copy, keyval, &value, &flag));
  CHECK(flag && value == &bytes[1] && copies == 1);
  OK(MPI_Comm_get_attr(copy, dup_keyval, &value, &flag));
  CHECK(flag && value == &bytes[2]);
  OK(MPI_Comm_free(&copy));
  OK(MPI_Attr_delete(MPI_COMM_SELF, keyval));
  CHECK(deletions == 2);
  OK(MPI_Comm_delete_attr(MPI_COMM_SELF, dup_keyval));
  OK(MPI_Comm_free_keyval(&keyval));
  OK(MPI_Keyval_free(&dup_keyval));
  CHECK(keyval == MPI_KEYVAL_INVALID && dup_keyval == MPI_KEYVAL_INVALID);
  OK(MPI_Keyval_create(MPI_NULL_COPY_FN, refuse_deletion, &keyval, NULL));
  OK(MPI_Attr_put(MPI_COMM_SELF, keyval, bytes));
  CHECK(MPI_Attr_delete(MPI_COMM_SELF, keyval) == MPI_ERR_TOPOLOGY);
  refuses = 0;
  OK(MPI_Attr_delete(MPI_COMM_SELF, keyval));

  step = "predefined attributes";
  int* number = NULL;
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &number, &flag));
  CHECK(flag && *number >= 32767);
  OK(MPI_Attr_get(MPI_COMM_WORLD, MPI_HOST, &number, &flag));
  CHECK(flag && *number == MPI_PROC_NULL);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &number, &flag));
  CHECK(flag && *number == MPI_ANY_SOURCE);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &number, &flag));
  CHECK(flag && *number >= MPI_ERR_LASTCODE);
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &number, &flag));
  CHECK(flag && *number >= size);
  CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, bytes) == MPI_ERR_KEYVAL);
}

static void communicators(void) {
  step = "communicators and groups";
  MPI_Comm copy, shared, none;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
  CHECK(comparison_of(copy, MPI_COMM_WORLD) == MPI_CONGRUENT);
  CHECK(comparison_of(copy, copy) == MPI_IDENT);
  CHECK(MPI_Comm_f2c(MPI_Comm_c2f(copy)) == copy);
  check_ring(copy, 3);
  OK(MPI_Comm_free(&copy));
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared));
  CHECK(size_of(shared) >= 1 && size_of(shared) <= size);
  OK(MPI_Comm_free(&shared));
  OK(MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &none));
  CHECK(none == MPI_COMM_NULL);
  MPI_Group world, self, both;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Comm_group(MPI_COMM_SELF, &self));
  int ranks[2] = {0, MPI_PROC_NULL}, translated[2] = {-9, -9}, result = -1, of_none = 0;
  OK(MPI_Group_translate_ranks(self, 2, ranks, world, translated));
  CHECK(translated[0] == rank && translated[1] == MPI_PROC_NULL);
  OK(MPI_Group_difference(self, world, &both));
  OK(MPI_Group_compare(both, MPI_GROUP_EMPTY, &result));
  OK(MPI_Group_rank(both, &of_none));
  CHECK(result == MPI_IDENT && of_none == MPI_UNDEFINED);
  OK(MPI_Group_free(&world));
  OK(MPI_Group_free(&self));
  CHECK(world == MPI_GROUP_NULL);

  step = "info";
  MPI_Info info = info_with("ferry", "boat");
  char key[MPI_MAX_INFO_KEY + 1], text[6] = "";
  int flag = 0;
  OK(MPI_Info_get_nthkey(info, 0, key));
  CHECK(strcmp(key, "ferry") == 0 && MPI_Info_get(info, "ferry", 5, text, &flag) == 0 && flag &&
        strcmp(text, "boat") == 0);
  OK(MPI_Info_free(&info));
  CHECK(info == MPI_INFO_NULL);
}

static void topologies(void) {
  step = "topologies";
  int kind = 0, dims[1] = {size}, periods[1] = {0}, source = 0, dest = 0;
  MPI_Comm line;
  OK(MPI_Topo_test(MPI_COMM_WORLD, &kind));
  CHECK(kind == MPI_UNDEFINED);
  OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &line));
  OK(MPI_Topo_test(line, &kind));
  CHECK(kind == MPI_CART);
  OK(MPI_Cart_shift(line, 0, 1, &source, &dest));
  CHECK(source == (rank == 0 ? MPI_PROC_NULL : rank - 1));
  CHECK(dest == (rank == size - 1 ? MPI_PROC_NULL : rank + 1));
  int from[2] = {-1, -1}, counts[2] = {1, 1};
  MPI_Aint places[2] = {0, sizeof(int)};
  MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  const int to[2] = {rank, rank};
  OK(MPI_Neighbor_alltoallw(to, counts, places, types, from, counts, places, types, line));
  CHECK(from[0] == (rank == 0 ? -1 : rank - 1) && from[1] == (rank == size - 1 ? -1 : rank + 1));
  OK(MPI_Comm_free(&line));

  step = "a graph without weights";
  MPI_Comm graph;
  int in = 0, out = 0, weighted = 1, sources[1], destinations[1];
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next,
                                    MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph));
  OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
  CHECK(in == 1 && out == 1 && !weighted);
  OK(MPI_Dist_graph_neighbors(graph, 1, sources, MPI_UNWEIGHTED, 1, destinations, MPI_UNWEIGHTED));
  CHECK(sources[0] == before && destinations[0] == next);
  OK(MPI_Topo_test(graph, &kind));
  CHECK(kind == MPI_DIST_GRAPH);
  OK(MPI_Comm_free(&graph));
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL,
                                    MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &graph));
  OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
  CHECK(in == 0 && out == 0 && weighted);
  OK(MPI_Comm_free(&graph));
}

/* ---- Windows --------------------------------------------------------------------------------- */

static void windows(void) {
  step = "windows";
  int* base = NULL;
  int *flavor = NULL, *model = NULL, flag = 0, one = rank + 1, old = -1;
  MPI_Win window;
  OK(MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window));
  base[0] = base[1] = 0;
  OK(MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &flavor, &flag));
  CHECK(flag && *flavor == MPI_WIN_FLAVOR_ALLOCATE);
  OK(MPI_Win_get_attr(window, MPI_WIN_MODEL, &model, &flag));
  CHECK(flag && (*model == MPI_WIN_UNIFIED || *model == MPI_WIN_SEPARATE));
  OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, window));
  OK(MPI_Put(&one, 1, MPI_INT, next, 0, 1, MPI_INT, window));
  OK(MPI_Put(&one, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, window));
  OK(MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED, window));
  CHECK(base[0] == before + 1);
  OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window));
  OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, window));
  OK(MPI_Win_unlock(0, window));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, MPI_MODE_NOCHECK * (size == 1), window));
  OK(MPI_Fetch_and_op(NULL, &old, MPI_INT, 0, 1, MPI_NO_OP, window));
  OK(MPI_Win_unlock(0, window));
  CHECK(old == size * (size + 1) / 2);
  MPI_Request request;
  OK(MPI_Win_lock_all(0, window));
  OK(MPI_Rget(&old, 1, MPI_INT, next, 0, 1, MPI_INT, window, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Win_unlock_all(window));
  CHECK(old == rank + 1);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_free(&window));
  CHECK(window == MPI_WIN_NULL);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  attributes();
  communicators();
  topologies();
  windows();
  return end_of_rank();
}
