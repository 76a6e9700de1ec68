/* Large partitions, which travel in pieces: they arrive whole however the receiver cuts its buffer,
 * parts of them as soon as they are there, in memory of all kinds and with types whose elements lie
 * across the borders of pieces. Any number of ranks form a ring.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/mpi/ranks/partitioned.h"

enum { tag = 16, rounds = 3 };

/* Of either side, and the bytes of their product's part. */
struct cut {
  int out, in;
  size_t each;
};
static size_t bytes_of(const struct cut* cut) {
  return (size_t)cut->out * (size_t)cut->in * cut->each;
}

/* ---- Bytes ---- */

/* The receiver's partitions that begin and end inside the sender's partition `p` come once that is
 * readied, though its neighbours are not, and are asked for from the last one on. Those that need
 * another one do not come. */
static void expect_inside(MPI_Request receive, const struct buffer* in, const struct cut* cut,
                          int p, const char readied[], unsigned seed) {
  const size_t each = in->bytes / (size_t)cut->in, sent = in->bytes / (size_t)cut->out;
  for (int q = cut->in - 1; q >= 0; --q) {
    const size_t first = (size_t)q * each / sent, last = ((size_t)(q + 1) * each - 1) / sent;
    int is_expected = 1;
    for (size_t needed = first; needed <= last; ++needed) is_expected &= readied[needed];
    if (is_expected && first <= (size_t)p && (size_t)p <= last) {
      await_arrival(receive, q);
      CHECK(holds(in, (size_t)q * each, each, seed));
    }
    CHECK(has_arrived(receive, q) == is_expected);
  }
}

static void init_with(MPI_Request both[2], const struct buffer* out, const struct buffer* in,
                      const struct cut* cut, const char* key, const char* value) {
  MPI_Info info = key == NULL ? MPI_INFO_NULL : info_with(key, value);
  OK(MPI_Psend_init(out->at, cut->out, (MPI_Count)out->bytes / cut->out, MPI_BYTE, next, tag,
                    MPI_COMM_WORLD, info, &both[kSend]));
  OK(MPI_Precv_init(in->at, cut->in, (MPI_Count)in->bytes / cut->in, MPI_BYTE, before, tag,
                    MPI_COMM_WORLD, MPI_INFO_NULL, &both[kReceive]));
  if (info != MPI_INFO_NULL) OK(MPI_Info_free(&info));
}

/* One partition after the other, the last one first. */
static void one_by_one(enum kind from, enum kind to, struct cut cut, const char* key,
                       const char* value) {
  enum { most = 16 };
  MPI_Request both[2];
  struct buffer out = make_buffer(from, bytes_of(&cut)), in = make_buffer(to, bytes_of(&cut));
  CHECK(cut.out <= most);
  step = "one large partition after the other";
  init_with(both, &out, &in, &cut, key, value);
  for (unsigned round = 0; round < rounds; ++round) {
    char readied[most] = {0};
    fill_buffer(&out, round + (unsigned)rank);
    clear(&in);
    OK(MPI_Startall(2, both));
    for (int p = cut.out - 1; p >= 0; --p) {
      OK(MPI_Pready(p, both[kSend]));
      readied[p] = 1;
      expect_inside(both[kReceive], &in, &cut, p, readied, round + (unsigned)before);
      meet(); /* nobody readies the next one before all have looked */
    }
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    CHECK(holds_all(&in, round + (unsigned)before));
  }
  free_all(2, both);
  drop_buffer(&out);
  drop_buffer(&in);
}

/* All at once, so that both sides move pieces of the same partitions. */
static void together(enum kind from, enum kind to, struct cut cut) {
  MPI_Request both[2];
  struct buffer out = make_buffer(from, bytes_of(&cut)), in = make_buffer(to, bytes_of(&cut));
  step = "large partitions together";
  init_with(both, &out, &in, &cut, NULL, NULL);
  for (unsigned round = 0; round < 4 * rounds; ++round) {
    fill_buffer(&out, round + (unsigned)rank);
    if (round % 2 == 0) { /* readied before the receiver starts */
      OK(MPI_Start(&both[kSend]));
      ready_all(both[kSend], cut.out);
      meet();
      OK(MPI_Start(&both[kReceive]));
    } else {
      OK(MPI_Startall(2, both));
      ready_all(both[kSend], cut.out);
    }
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    CHECK(holds_all(&in, round + (unsigned)before));
  }
  free_all(2, both);
  drop_buffer(&out);
  drop_buffer(&in);
}

static void all_cuts(void) {
  static const struct cut cuts[] = {
      {1, 1, 300001}, {1, 7, 50003}, {3, 1, 100003}, {3, 4, 30011}, {2, 16, 8209}};
  enum { cut_count = sizeof(cuts) / sizeof(cuts[0]) };
  for (int c = 0; c < cut_count; ++c) {
    for (int kinds = 0; kinds < kKinds * kKinds; ++kinds) {
      /* Device memory is copied by streams, which takes longer. */
      const enum kind from = (enum kind)(kinds % kKinds), to = (enum kind)(kinds / kKinds);
      if ((from == kDevice || to == kDevice) && c != 3) continue;
      one_by_one(from, to, cuts[c], NULL, NULL);
      together(from, to, cuts[c]);
    }
    one_by_one(kHeap, kOrdinary, cuts[c], "ferry_partitioned_min_bytes", "50000");
    one_by_one(kOrdinary, kHeap, cuts[c], "ferry_partitioned_max_units", "3");
  }
  together(kOrdinary, kOrdinary, (struct cut){1, 1, 5 << 20}); /* as many pieces as there may be */
  together(kHeap, kHeap, (struct cut){2, 5, 1 << 20});
}

/* ---- Elements with gaps ---- */

/* Three bytes and a gap; a border between pieces is nowhere a border between elements. */
static void with_gaps(enum kind kind, int is_sparse_out, int is_sparse_in) {
  enum { partitions = 2, count = 50021, element_bytes = 3, extent = 5 };
  const size_t packed = (size_t)partitions * count * element_bytes;
  MPI_Datatype dense, sparse;
  MPI_Request both[2];
  struct buffer out = make_buffer(kind, (size_t)partitions * count * extent);
  struct buffer in = make_buffer(kind, (size_t)partitions * count * extent);
  step = "pieces of elements with gaps";
  OK(MPI_Type_contiguous(element_bytes, MPI_BYTE, &dense));
  OK(MPI_Type_create_resized(dense, 0, extent, &sparse));
  OK(MPI_Type_commit(&dense));
  OK(MPI_Type_commit(&sparse));
  OK(MPI_Psend_init(out.at, partitions, count, is_sparse_out ? sparse : dense, next, tag,
                    MPI_COMM_WORLD, MPI_INFO_NULL, &both[kSend]));
  OK(MPI_Precv_init(in.at, 1, (MPI_Count)partitions * count, is_sparse_in ? sparse : dense, before,
                    tag, MPI_COMM_WORLD, MPI_INFO_NULL, &both[kReceive]));
  for (unsigned round = 0; round < rounds; ++round) {
    struct buffer sent = make_buffer(kOrdinary, out.bytes); /* what the one before has */
    fill_buffer(&sent, round + (unsigned)before);
    fill_buffer(&out, round + (unsigned)rank);
    clear(&in);
    OK(MPI_Startall(2, both));
    ready_all(both[kSend], partitions);
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    get(&in, 0, in.bytes);
    for (size_t i = 0; i < packed; ++i) {
      const size_t gapped = i / element_bytes * extent + i % element_bytes;
      CHECK(in.image[is_sparse_in ? gapped : i] == sent.image[is_sparse_out ? gapped : i]);
    }
    for (size_t i = 0; is_sparse_in && i < in.bytes; ++i) {
      CHECK(i % extent < element_bytes || in.image[i] == kUntouched);
    }
    drop_buffer(&sent);
  }
  free_all(2, both);
  OK(MPI_Type_free(&dense));
  OK(MPI_Type_free(&sparse));
  drop_buffer(&out);
  drop_buffer(&in);
}

int main(int argc, char** argv) {
  begin_with_threads(&argc, &argv, level_of(argc, argv));
  bound_time(120);
  all_cuts();
  for (int shape = 1; shape < 4; ++shape) {
    with_gaps(kOrdinary, shape & 1, shape >> 1);
    with_gaps(kHeap, shape & 1, shape >> 1);
  }
  return end_well("all pieces were right");
}
