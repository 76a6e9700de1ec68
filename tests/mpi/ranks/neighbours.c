/* Collectives among neighbours with different numbers of them: open and mixed grids, graphs with
 * processes that have no neighbours, distributed graphs with loops and several edges between two
 * processes. Any number of ranks.
 *
 * The data along an edge names its sender and the place among the sender's destinations, so that
 * blocks that took each other's place are found. */
#include "tests/mpi/ranks/forms.h"

enum {
  most = 8,  /* edges of a process, one way */
  block = 3, /* words of a full block */
  room = 8,  /* words from one block to the next: there is a gap */
  gap = -1
};

static MPI_Comm comm;

/* The edges of this process. Incoming ones: the sender, and the place among its destinations. */
static int in, out, from[most], place[most], to[most];

static int sent[most * room], got[most * room];

static int word(int sender, int at, int i) { return sender * 10000 + at * 100 + i; }

static void clear(void) {
  for (int i = 0; i < most * room; ++i) got[i] = gap;
  for (int i = 0; i < most * room; ++i) sent[i] = word(rank, i / room, i % room);
}

/* `count` words of edge `edge` lie from `first` on, every `stride` words, and nothing around. */
static void expect(int edge, const int* first, int count, int stride, int at) {
  for (int i = 0; i < room; ++i) {
    const int is_there = from[edge] != MPI_PROC_NULL && i % stride == 0 && i / stride < count;
    CHECK(first[i] == (is_there ? word(from[edge], at, i / stride) : gap));
  }
}

/* ---- The calls ---- */

/* All blocks have one length and lie side by side, so that the only gap is beyond the last one. */
static void judge_packed(int gathers) {
  for (int edge = 0; edge < in; ++edge) {
    for (int i = 0; i < block; ++i) {
      const int at = gathers ? 0 : place[edge];
      const int wanted = from[edge] == MPI_PROC_NULL ? gap : word(from[edge], at, i);
      CHECK(got[edge * block + i] == wanted);
    }
  }
  CHECK(got[in * block] == gap);
}
static void judge_allgather(void) { judge_packed(1); }
static void judge_alltoall(void) { judge_packed(0); }

/* Blocks side by side, too. */
static void prepare_packed(void) {
  clear();
  for (int i = 0; i < out * block; ++i) sent[i] = word(rank, i / block, i % block);
}

static void equal_blocks(void) {
  ALL_FORMS(clear, judge_allgather, Neighbor_allgather, Ineighbor_allgather, sent, block, MPI_INT,
            got, block, MPI_INT, comm);
  ALL_FORMS(prepare_packed, judge_alltoall, Neighbor_alltoall, Ineighbor_alltoall, sent, block,
            MPI_INT, got, block, MPI_INT, comm);
}

static int gathered(int sender) { return sender % block + 1; }
/* The number of words along an edge, perhaps 0. */
static int along(int sender, int at) { return (sender + at) % (block + 1); }

/* The last places are filled first. */
static void judge_allgatherv(void) {
  for (int edge = 0; edge < in; ++edge) {
    expect(edge, got + (most - 1 - edge) * room, gathered(from[edge]), 1, 0);
  }
}
static void judge_alltoallv(void) {
  for (int edge = 0; edge < in; ++edge) {
    expect(edge, got + (most - 1 - edge) * room, along(from[edge], place[edge]), 1, place[edge]);
  }
}
/* Every second edge's words lie apart. */
static void judge_alltoallw(void) {
  for (int edge = 0; edge < in; ++edge) {
    expect(edge, got + (most - 1 - edge) * room, along(from[edge], place[edge]), 1 + edge % 2,
           place[edge]);
  }
}

static void blocks_of_their_own(void) {
  int out_counts[most], out_places[most], in_counts[most], in_places[most], in_lengths[most];
  MPI_Count large_out_counts[most], large_in_counts[most], large_in_lengths[most];
  MPI_Aint large_out_places[most], large_in_places[most], out_bytes[most], in_bytes[most];
  MPI_Datatype out_types[most], in_types[most], apart;
  OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &apart));
  OK(MPI_Type_commit(&apart));
  for (int edge = 0; edge < most; ++edge) {
    const int is_in = edge < in && from[edge] != MPI_PROC_NULL;
    large_out_counts[edge] = out_counts[edge] = edge < out ? along(rank, edge) : 0;
    large_in_counts[edge] = in_counts[edge] = is_in ? along(from[edge], place[edge]) : 1;
    large_in_lengths[edge] = in_lengths[edge] = is_in ? gathered(from[edge]) : 1;
    large_out_places[edge] = out_places[edge] = edge * room;
    large_in_places[edge] = in_places[edge] = (most - 1 - edge) * room;
    out_bytes[edge] = out_places[edge] * (MPI_Aint)sizeof(int);
    in_bytes[edge] = in_places[edge] * (MPI_Aint)sizeof(int);
    out_types[edge] = MPI_INT;
    in_types[edge] = edge % 2 == 0 ? MPI_INT : apart;
  }
  SMALL_FORMS(clear, judge_allgatherv, Neighbor_allgatherv, Ineighbor_allgatherv, sent,
              gathered(rank), MPI_INT, got, in_lengths, in_places, MPI_INT, comm);
  LARGE_FORMS(clear, judge_allgatherv, Neighbor_allgatherv, Ineighbor_allgatherv, sent,
              gathered(rank), MPI_INT, got, large_in_lengths, large_in_places, MPI_INT, comm);
  SMALL_FORMS(clear, judge_alltoallv, Neighbor_alltoallv, Ineighbor_alltoallv, sent, out_counts,
              out_places, MPI_INT, got, in_counts, in_places, MPI_INT, comm);
  LARGE_FORMS(clear, judge_alltoallv, Neighbor_alltoallv, Ineighbor_alltoallv, sent,
              large_out_counts, large_out_places, MPI_INT, got, large_in_counts, large_in_places,
              MPI_INT, comm);
  SMALL_FORMS(clear, judge_alltoallw, Neighbor_alltoallw, Ineighbor_alltoallw, sent, out_counts,
              out_bytes, out_types, got, in_counts, in_bytes, in_types, comm);
  LARGE_FORMS(clear, judge_alltoallw, Neighbor_alltoallw, Ineighbor_alltoallw, sent,
              large_out_counts, out_bytes, out_types, got, large_in_counts, in_bytes, in_types,
              comm);
  OK(MPI_Type_free(&apart));
}

/* Frees the communicator. */
static void call_all(void) {
  CHECK(in <= most && out <= most);
  equal_blocks();
  blocks_of_their_own();
  OK(MPI_Comm_free(&comm));
}

/* ---- The topologies ---- */

/* The neighbours are the one before and the one after along each dimension; the one before sent its
 * data behind itself. */
static void check_grid(int dimensions, const int* dims, const int* periods) {
  step = "a grid";
  OK(MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, 0, &comm));
  if (comm == MPI_COMM_NULL) return;
  in = out = 2 * dimensions;
  for (int d = 0; d < dimensions; ++d) {
    OK(MPI_Cart_shift(comm, d, 1, &from[2 * d], &from[2 * d + 1]));
    place[2 * d] = 2 * d + 1;
    place[2 * d + 1] = 2 * d;
  }
  memcpy(to, from, sizeof(to));
  call_all();
}

/* The first of several edges from one process to another goes with the first (MPI 5.0, section
 * 8.6). `all` has the destinations of all processes. */
static void find_places(void) {
  int all[64 * most], mine[most];
  CHECK(size <= 64);
  for (int edge = 0; edge < most; ++edge) mine[edge] = edge < out ? to[edge] : MPI_PROC_NULL;
  OK(MPI_Allgather(mine, most, MPI_INT, all, most, MPI_INT, MPI_COMM_WORLD));
  for (int edge = 0; edge < in; ++edge) {
    int before = 0;
    for (int other = 0; other < edge; ++other) before += from[other] == from[edge];
    for (place[edge] = 0;; ++place[edge]) {
      CHECK(place[edge] < most);
      if (all[from[edge] * most + place[edge]] == rank && before-- == 0) break;
    }
  }
}

static void check_star(void) {
  step = "a graph: a star, whose last process has no neighbours";
  int index[64], edges[128], count = 0;
  const int points = size < most ? size - 1 : most - 1; /* 1 to points, around 0 */
  for (int i = 1; i < points; ++i) edges[count++] = i;
  index[0] = count;
  for (int i = 1; i < size; ++i) {
    if (i < points) edges[count++] = 0;
    index[i] = count;
  }
  OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm));
  OK(MPI_Graph_neighbors_count(comm, rank, &in));
  out = in;
  OK(MPI_Graph_neighbors(comm, rank, in, from));
  memcpy(to, from, sizeof(to));
  find_places();
  call_all();
}

/* There are two edges to the next process, three to the one after it, and one from the first
 * process to itself. The last process only receives. */
static void check_several_edges(void) {
  step = "a distributed graph with several edges between two processes";
  const int second = (rank + 2) % size;
  int sources[1] = {rank}, count[1], named[most], weighted;
  int edges = 0;
  if (rank != size - 1) {
    for (int i = 0; i < 2; ++i) named[edges++] = next;
    for (int i = 0; i < 3; ++i) named[edges++] = second;
  }
  if (rank == 0) named[edges++] = 0;
  count[0] = edges;
  OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, sources, count, named, MPI_UNWEIGHTED, MPI_INFO_NULL,
                           0, &comm));
  OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
  CHECK(out == edges && in <= most && !weighted);
  OK(MPI_Dist_graph_neighbors(comm, most, from, MPI_UNWEIGHTED, most, to, MPI_UNWEIGHTED));
  find_places();
  call_all();
}

/* Each process names its own edges, in its own order. */
static void check_adjacent(void) {
  step = "a distributed graph of adjacent processes in mixed order";
  in = out = 0;
  from[in++] = before;
  from[in++] = rank; /* itself, between two edges of another */
  from[in++] = before;
  to[out++] = rank;
  to[out++] = next;
  to[out++] = next;
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, from, MPI_UNWEIGHTED, out, to,
                                    MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
  find_places();
  call_all();
}

/* Who has no neighbours needs no buffers, whatever the counts. */
static void check_alone(void) {
  const int none[1] = {0};
  MPI_Request request;
  step = "a graph without edges";
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, none, MPI_UNWEIGHTED, 0, none,
                                    MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
  OK(MPI_Neighbor_allgather(NULL, 1, MPI_INT, NULL, 1, MPI_INT, comm));
  OK(MPI_Neighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_INT, comm));
  OK(MPI_Ineighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_INT, comm, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(MPI_Neighbor_alltoall(NULL, -1, MPI_INT, NULL, 1, MPI_INT, comm) == MPI_ERR_COUNT);
  OK(MPI_Comm_free(&comm));
}

int main(int argc, char** argv) {
  want_queues(argc, argv);
  begin(NULL, NULL);
  const int open[3] = {0, 0, 0}, mixed[3] = {0, 1, 1};
  int dims[3] = {size, 0, 0};
  check_grid(1, dims, open);
  dims[0] = 0;
  OK(MPI_Dims_create(size, 2, dims));
  check_grid(2, dims, open);
  check_grid(2, dims, mixed); /* with two ranks a process is its own neighbour */
  dims[0] = dims[1] = dims[2] = 0;
  OK(MPI_Dims_create(size, 3, dims));
  check_grid(3, dims, mixed);
  check_star();
  check_several_edges();
  check_adjacent();
  check_alone();
  close_on_queue();
  return end_well("all neighbours were right");
}
