/* Cartesian grids, graphs and distributed graphs. Any number of ranks. */
#include "tests/mpi/ranks/check.h"

static void check_grid(void) {
  step = "a grid of all processes";
  MPI_Comm grid, copy;
  int dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2], got[2], status = 0, count = 0;
  OK(MPI_Dims_create(size, 2, dims));
  CHECK(dims[0] * dims[1] == size && dims[0] >= dims[1]);
  OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid));
  OK(MPI_Topo_test(grid, &status));
  CHECK(status == MPI_CART);
  OK(MPI_Topo_test(MPI_COMM_WORLD, &status));
  CHECK(status == MPI_UNDEFINED);
  OK(MPI_Cartdim_get(grid, &count));
  CHECK(count == 2);
  const int own = rank_in(grid);
  int at = -1;
  OK(MPI_Cart_coords(grid, own, 2, coords));
  CHECK(coords[0] == own / dims[1] && coords[1] == own % dims[1]);
  OK(MPI_Cart_rank(grid, coords, &at));
  CHECK(at == own);
  coords[0] -= dims[0];
  OK(MPI_Cart_rank(grid, coords, &at));
  CHECK(at == own);
  int got_dims[2], got_periods[2];
  OK(MPI_Cart_get(grid, 2, got_dims, got_periods, got));
  CHECK(got_dims[0] == dims[0] && got_dims[1] == dims[1]);
  CHECK(got_periods[0] == 1 && got_periods[1] == 0);
  CHECK(got[1] == own % dims[1]);

  step = "shifts";
  for (int direction = 0; direction < 2; ++direction) {
    int from, to, value = -1;
    OK(MPI_Cart_shift(grid, direction, 1, &from, &to));
    OK(MPI_Sendrecv(&own, 1, MPI_INT, to, 0, &value, 1, MPI_INT, from, 0, grid, MPI_STATUS_IGNORE));
    CHECK(value == (from == MPI_PROC_NULL ? -1 : from));
    CHECK((from == MPI_PROC_NULL) == (direction == 1 && own % dims[1] == 0));
  }
  OK(MPI_Comm_dup(grid, &copy)); /* a duplicate has the topology, too */
  OK(MPI_Cartdim_get(copy, &count));
  CHECK(count == 2);

  step = "MPI_Cart_sub";
  MPI_Comm row, point;
  const int keep[2] = {0, 1}, nothing[2] = {0, 0};
  OK(MPI_Cart_sub(grid, keep, &row));
  CHECK(size_of(row) == dims[1] && rank_in(row) == own % dims[1]);
  OK(MPI_Cart_get(row, 1, got_dims, got_periods, got));
  CHECK(got_dims[0] == dims[1] && got_periods[0] == 0 && got[0] == own % dims[1]);
  OK(MPI_Cart_sub(grid, nothing, &point));
  CHECK(size_of(point) == 1);
  OK(MPI_Cartdim_get(point, &count));
  CHECK(count == 0);
  OK(MPI_Comm_free(&point));
  OK(MPI_Comm_free(&row));
  OK(MPI_Comm_free(&copy));
  OK(MPI_Comm_free(&grid));
}

/* The number of the grid's edges between nodes, summed over all processes. */
static int crossing(MPI_Comm grid, const int* node_of) {
  int own = 0, total = 0, from, to;
  MPI_Group world, group;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Comm_group(grid, &group));
  for (int direction = 0; direction < 2; ++direction) {
    OK(MPI_Cart_shift(grid, direction, 1, &from, &to));
    if (to == MPI_PROC_NULL) continue;
    OK(MPI_Group_translate_ranks(group, 1, &to, world, &from));
    own += node_of[from] != node_of[rank];
  }
  OK(MPI_Allreduce(&own, &total, 1, MPI_INT, MPI_SUM, grid));
  OK(MPI_Group_free(&group));
  OK(MPI_Group_free(&world));
  return total;
}

/* Rows of half of the processes each: on two nodes, each node's processes are a row. */
static void check_reordered_grid(void) {
  step = "a grid whose neighbours share nodes";
  MPI_Comm node, plain, reordered;
  int dims[2] = {2, size / 2}, periods[2] = {0, 0}, name = rank, place = -1;
  if (size % 2 != 0) return;
  int* node_of = malloc((size_t)size * sizeof(int));
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  OK(MPI_Bcast(&name, 1, MPI_INT, 0, node));
  OK(MPI_Allgather(&name, 1, MPI_INT, node_of, 1, MPI_INT, MPI_COMM_WORLD));
  OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &plain));
  CHECK(rank_in(plain) == rank);
  OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &reordered));
  OK(MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, &place));
  CHECK(place == rank_in(reordered));
  const int without = crossing(plain, node_of), with = crossing(reordered, node_of);
  CHECK(with <= without);
  if (size == 8 && without == 4) CHECK(with == 2);
  OK(MPI_Comm_free(&plain));
  OK(MPI_Comm_free(&reordered));
  OK(MPI_Comm_free(&node));
  free(node_of);
}

static void check_smaller_grid(void) {
  step = "a grid of fewer processes";
  MPI_Comm grid;
  const int dims[1] = {(size + 1) / 2}, periods[1] = {0};
  int at = -1;
  OK(MPI_Cart_map(MPI_COMM_WORLD, 1, dims, periods, &at));
  CHECK(at == (rank < dims[0] ? rank : MPI_UNDEFINED));
  OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid));
  CHECK((grid == MPI_COMM_NULL) == (rank >= dims[0]));
  if (grid != MPI_COMM_NULL) OK(MPI_Comm_free(&grid));
  OK(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &grid));
  CHECK((grid == MPI_COMM_NULL) == (rank != 0));
  if (grid != MPI_COMM_NULL) OK(MPI_Comm_free(&grid));
}

static void check_graph(void) {
  step = "a graph: a ring";
  MPI_Comm graph;
  int* index = malloc((size_t)size * sizeof(int));
  int* edges = malloc((size_t)size * 2 * sizeof(int));
  for (int i = 0; i < size; ++i) {
    index[i] = 2 * (i + 1);
    edges[2 * i] = (i + size - 1) % size;
    edges[2 * i + 1] = (i + 1) % size;
  }
  int nodes = 0, count = 0, neighbours[2], status = 0, at = -1;
  OK(MPI_Graph_map(MPI_COMM_WORLD, size, index, edges, &at));
  CHECK(at == rank);
  OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph));
  OK(MPI_Topo_test(graph, &status));
  CHECK(status == MPI_GRAPH);
  OK(MPI_Graphdims_get(graph, &nodes, &count));
  CHECK(nodes == size && count == 2 * size);
  memset(index, 0, (size_t)size * sizeof(int));
  memset(edges, 0, (size_t)size * 2 * sizeof(int));
  OK(MPI_Graph_get(graph, size, 2 * size, index, edges));
  CHECK(index[size - 1] == 2 * size && edges[2 * size - 1] == 0);
  OK(MPI_Graph_neighbors_count(graph, rank, &count));
  CHECK(count == 2);
  OK(MPI_Graph_neighbors(graph, rank, 2, neighbours));
  CHECK(neighbours[0] == before && neighbours[1] == next);
  OK(MPI_Comm_free(&graph));
  OK(MPI_Graph_create(MPI_COMM_WORLD, 0, index, edges, 0, &graph));
  CHECK(graph == MPI_COMM_NULL);
  free(index);
  free(edges);
}

/* The library may choose the order of the neighbours. */
static int contains(const int* list, const int* weights, int count, int value, int weight) {
  for (int i = 0; i < count; ++i) {
    if (list[i] == value && weights[i] == weight) return 1;
  }
  return 0;
}

static void check_distributed_graph(void) {
  step = "a distributed graph whose edges others name";
  /* Each process names the edge from the next process to the one after it; the last one also a
   * loop of rank 0. Weights are the sources. */
  MPI_Comm graph;
  const int sources[2] = {next, 0}, degrees[2] = {1, 1};
  const int destinations[2] = {(rank + 2) % size, 0}, weights[2] = {next, 77};
  OK(MPI_Dist_graph_create(MPI_COMM_WORLD, rank == size - 1 ? 2 : 1, sources, degrees, destinations,
                           weights, MPI_INFO_NULL, 0, &graph));
  int in = 0, out = 0, weighted = 0, status = 0;
  OK(MPI_Topo_test(graph, &status));
  CHECK(status == MPI_DIST_GRAPH);
  OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
  CHECK(in == (rank == 0 ? 2 : 1) && out == in && weighted);
  int from[2], from_weights[2], to[2], to_weights[2];
  OK(MPI_Dist_graph_neighbors(graph, in, from, from_weights, out, to, to_weights));
  CHECK(contains(from, from_weights, in, before, before));
  CHECK(contains(to, to_weights, out, next, rank));
  CHECK(rank != 0 ||
        (contains(from, from_weights, in, 0, 77) && contains(to, to_weights, out, 0, 77)));
  OK(MPI_Comm_free(&graph));

  step = "a distributed graph that one process names";
  int all_sources[1] = {0}, all_degrees[1];
  int* all = malloc((size_t)size * sizeof(int));
  for (int i = 0; i < size; ++i) all[i] = i;
  all_degrees[0] = size;
  OK(MPI_Dist_graph_create(MPI_COMM_WORLD, rank == size - 1 ? 1 : 0, all_sources, all_degrees, all,
                           MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph));
  OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
  CHECK(in == 1 && out == (rank == 0 ? size : 0) && !weighted);
  OK(MPI_Comm_free(&graph));
  free(all);

  step = "a distributed graph of adjacent processes";
  const int weight = rank + 5, weight_in = before + 5;
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &weight_in, 1, &next, &weight,
                                    MPI_INFO_NULL, 0, &graph));
  OK(MPI_Dist_graph_neighbors(graph, 1, from, from_weights, 1, to, to_weights));
  CHECK(from[0] == before && from_weights[0] == weight_in);
  CHECK(to[0] == next && to_weights[0] == weight);
  OK(MPI_Comm_free(&graph));
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL,
                                    MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &graph));
  OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
  CHECK(in == 0 && out == 0 && weighted);
  OK(MPI_Comm_free(&graph));
}

static int make_graph(MPI_Comm* made) {
  return MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next,
                                        MPI_UNWEIGHTED, MPI_INFO_NULL, 0, made);
}
static int make_duplicate(MPI_Comm* made) { return MPI_Comm_dup(MPI_COMM_WORLD, made); }

/* Programs that find their neighbours by rounds of messages of one tag end a round by making a
 * graph, or a duplicate: no rank may leave that, and send what belongs to the next round, before
 * all have come. */
static void check_that_it_ends_a_round(int (*make)(MPI_Comm* made)) {
  step = "no rank leaves the creation of a communicator before all have come";
  const int last = size - 1, tag = 9;
  MPI_Request next_round = MPI_REQUEST_NULL;
  MPI_Comm made;
  int has_come = 0;
  OK(MPI_Barrier(MPI_COMM_WORLD));
  for (const double begin = MPI_Wtime(); rank == last && MPI_Wtime() < begin + 0.2;) {
    OK(MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &has_come, MPI_STATUS_IGNORE));
    CHECK(!has_come);
  }
  OK(make(&made));
  OK(MPI_Isend(NULL, 0, MPI_INT, last, tag, MPI_COMM_WORLD, &next_round));
  for (int i = 0; rank == last && i < size; ++i) {
    OK(MPI_Recv(NULL, 0, MPI_INT, i, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  OK(MPI_Wait(&next_round, MPI_STATUS_IGNORE));
  OK(MPI_Comm_free(&made));
}

static void check_mistakes(void) {
  step = "mistakes with topologies";
  MPI_Comm comm = MPI_COMM_NULL, line;
  const int too_many[1] = {size + 1}, none[1] = {0}, one[1] = {1}, all[1] = {size}, flat[1] = {0};
  const int bad_index[1] = {-1}, index[1] = {1}, bad_edge[1] = {1};
  int dims[2] = {size + 1, 0}, value = 0, other = 0;
  OK(MPI_Cart_create(MPI_COMM_WORLD, 1, all, flat, 0, &line));
  CHECK(MPI_Dims_create(size, 2, dims) == MPI_ERR_DIMS);
  CHECK(MPI_Dims_create(size, -1, dims) == MPI_ERR_DIMS);
  CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, too_many, one, 0, &comm) == MPI_ERR_DIMS);
  CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, none, one, 0, &comm) == MPI_ERR_DIMS);
  CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, NULL, one, 0, &comm) == MPI_ERR_ARG);
  CHECK(MPI_Cartdim_get(MPI_COMM_WORLD, &value) == MPI_ERR_TOPOLOGY);
  CHECK(MPI_Graphdims_get(line, &value, &other) == MPI_ERR_TOPOLOGY);
  CHECK(MPI_Dist_graph_neighbors_count(line, &value, &other, dims) == MPI_ERR_TOPOLOGY);
  CHECK(MPI_Cart_rank(line, too_many, &value) == MPI_ERR_ARG);
  CHECK(MPI_Cart_coords(line, size, 1, &value) == MPI_ERR_RANK);
  CHECK(MPI_Cart_shift(line, 1, 1, &value, &other) == MPI_ERR_DIMS);
  CHECK(MPI_Graph_create(MPI_COMM_WORLD, 1, bad_index, none, 0, &comm) == MPI_ERR_TOPOLOGY);
  CHECK(MPI_Graph_create(MPI_COMM_WORLD, 1, index, bad_edge, 0, &comm) == MPI_ERR_TOPOLOGY);
  CHECK(MPI_Graph_create(MPI_COMM_WORLD, size + 1, index, none, 0, &comm) == MPI_ERR_ARG);
  CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &size, MPI_UNWEIGHTED, 0, NULL,
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm) == MPI_ERR_RANK);
  CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, none, MPI_WEIGHTS_EMPTY, 0, NULL,
                                       MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &comm) == MPI_ERR_ARG);
  CHECK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &size, one, none, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                              &comm) == MPI_ERR_RANK);
  CHECK(comm == MPI_COMM_NULL);
  OK(MPI_Comm_free(&line));
}

int main(void) {
  begin(NULL, NULL);
  check_grid();
  check_smaller_grid();
  check_reordered_grid();
  check_graph();
  check_distributed_graph();
  check_that_it_ends_a_round(make_graph);
  check_that_it_ends_a_round(make_duplicate);
  check_mistakes();
  return end_well("all topologies were right");
}
