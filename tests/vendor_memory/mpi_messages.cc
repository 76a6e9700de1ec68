// Messages of all kinds: each rank sends to the next one and receives from the one before.
#include <ferry/stream.h>
#include <mpix.h>

#include <cstdint>

#include "tests/vendor_memory/mpi_cases.h"

namespace ferry::vendor_memory {
namespace {

constexpr size_t kSizes[] = {8, 1000, 8192, size_t{20} << 10, size_t{64} << 10, size_t{256} << 10};

struct Ring {
  int next = (rank + 1) % size;
  int before = (rank + size - 1) % size;
  unsigned own = static_cast<unsigned>(rank);
  unsigned theirs = static_cast<unsigned>(before);
};

using Way = void (*)(const Ring& ring, const void* out, void* in, int bytes);

void ByBlocking(const Ring& ring, const void* out, void* in, int bytes) {
  if (rank % 2 == 0) {
    VENDOR_OK(MPI_Send(out, bytes, MPI_BYTE, ring.next, 1, MPI_COMM_WORLD));
    VENDOR_OK(MPI_Recv(in, bytes, MPI_BYTE, ring.before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  } else {
    VENDOR_OK(MPI_Recv(in, bytes, MPI_BYTE, ring.before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    VENDOR_OK(MPI_Send(out, bytes, MPI_BYTE, ring.next, 1, MPI_COMM_WORLD));
  }
}

void BySynchronous(const Ring& ring, const void* out, void* in, int bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  VENDOR_OK(MPI_Issend(out, bytes, MPI_BYTE, ring.next, 2, MPI_COMM_WORLD, &request));
  VENDOR_OK(MPI_Recv(in, bytes, MPI_BYTE, ring.before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  VENDOR_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

void ByNonblocking(const Ring& ring, const void* out, void* in, int bytes) {
  MPI_Request requests[2];
  VENDOR_OK(MPI_Irecv(in, bytes, MPI_BYTE, ring.before, 3, MPI_COMM_WORLD, &requests[0]));
  VENDOR_OK(MPI_Isend(out, bytes, MPI_BYTE, ring.next, 3, MPI_COMM_WORLD, &requests[1]));
  VENDOR_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
}

// The message is there before the receive is.
void ByUnexpected(const Ring& ring, const void* out, void* in, int bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  VENDOR_OK(MPI_Isend(out, bytes, MPI_BYTE, ring.next, 4, MPI_COMM_WORLD, &request));
  MPI_Message message = MPI_MESSAGE_NULL;
  VENDOR_OK(MPI_Mprobe(ring.before, 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
  VENDOR_OK(MPI_Mrecv(in, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE));
  VENDOR_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

void BySendrecv(const Ring& ring, const void* out, void* in, int bytes) {
  VENDOR_OK(MPI_Sendrecv(out, bytes, MPI_BYTE, ring.next, 5, in, bytes, MPI_BYTE, ring.before, 5,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

void ByReplace(const Ring& ring, const void* out, void* in, int bytes) {
  Copy(in, out, static_cast<size_t>(bytes));
  VENDOR_OK(MPI_Sendrecv_replace(in, bytes, MPI_BYTE, ring.next, 6, ring.before, 6, MPI_COMM_WORLD,
                                 MPI_STATUS_IGNORE));
}

void ByPersistent(const Ring& ring, const void* out, void* in, int bytes) {
  MPI_Request requests[2];
  VENDOR_OK(MPI_Recv_init(in, bytes, MPI_BYTE, ring.before, 7, MPI_COMM_WORLD, &requests[0]));
  VENDOR_OK(MPI_Send_init(out, bytes, MPI_BYTE, ring.next, 7, MPI_COMM_WORLD, &requests[1]));
  for (int round = 0; round < 3; ++round) {
    VENDOR_OK(MPI_Startall(2, requests));
    VENDOR_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  }
  VENDOR_OK(MPI_Request_free(&requests[0]));
  VENDOR_OK(MPI_Request_free(&requests[1]));
}

void ByBuffered(const Ring& ring, const void* out, void* in, int bytes) {
  std::vector<char> room(static_cast<size_t>(bytes) + MPI_BSEND_OVERHEAD);
  VENDOR_OK(MPI_Buffer_attach(room.data(), static_cast<int>(room.size())));
  VENDOR_OK(MPI_Bsend(out, bytes, MPI_BYTE, ring.next, 8, MPI_COMM_WORLD));
  VENDOR_OK(MPI_Recv(in, bytes, MPI_BYTE, ring.before, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  void* detached = nullptr;
  int detached_bytes = 0;
  VENDOR_OK(MPI_Buffer_detach(static_cast<void*>(&detached), &detached_bytes));
}

struct NamedWay {
  const char* name;
  Way run;
};
constexpr NamedWay kWays[] = {
    {"send", ByBlocking},         {"issend", BySynchronous}, {"isend", ByNonblocking},
    {"unexpected", ByUnexpected}, {"sendrecv", BySendrecv},  {"replace", ByReplace},
    {"persistent", ByPersistent}, {"bsend", ByBuffered},
};

}  // namespace

void SendAllSizes(const Kind& kind) {
  const std::string outer = step;
  const Ring ring;
  for (const size_t bytes : kSizes) {
    Buffer out(kind, bytes);
    Buffer in(kind, bytes);
    for (const NamedWay& way : kWays) {
      step = outer + ", " + way.name + ", " + std::to_string(bytes);
      const unsigned seed = static_cast<unsigned>(&way - kWays) * 16;
      out.Fill(ring.own + seed);
      in.Clear();
      way.run(ring, out.data(), in.data(), static_cast<int>(bytes));
      VENDOR_CHECK(in.IsFilled(ring.theirs + seed));
      in.CheckMargins();
    }
  }
  // Ordinary memory at one end only.
  Buffer memory(kind, 100'000);
  std::vector<unsigned char> plain(memory.bytes());
  memory.Fill(ring.own);
  ByNonblocking(ring, memory.data(), plain.data(), 100'000);
  VENDOR_CHECK(plain == Buffer::Pattern(plain.size(), ring.theirs));
  ByNonblocking(ring, plain.data(), memory.data(), 100'000);
  VENDOR_CHECK(memory.IsFilled(static_cast<unsigned>((rank + 2 * size - 2) % size)));
}

// ---- As benchmarks ----

void SendAsBenchmarks(const Kind& kind) {
  constexpr int kWindow = 64;
  constexpr size_t kMost = size_t{1} << 20;
  if (rank > 1) {
    return;
  }
  const int peer = 1 - rank;
  Buffer out(kind, kMost);
  Buffer in(kind, kMost);
  out.Fill(static_cast<unsigned>(rank));
  const std::string outer = step;
  for (size_t bytes = 1; bytes <= kMost; bytes *= 8) {
    step = outer + ", " + std::to_string(bytes);
    const int count = static_cast<int>(bytes);
    in.Clear();
    for (int i = 0; i < 10; ++i) {  // osu_latency
      if (rank == 0) {
        VENDOR_OK(MPI_Send(out.data(), count, MPI_CHAR, peer, 1, MPI_COMM_WORLD));
      }
      VENDOR_OK(MPI_Recv(in.data(), count, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      if (rank == 1) {
        VENDOR_OK(MPI_Send(out.data(), count, MPI_CHAR, peer, 1, MPI_COMM_WORLD));
      }
    }
    const std::vector<unsigned char> theirs = Buffer::Pattern(bytes, static_cast<unsigned>(peer));
    VENDOR_CHECK(in.Read<unsigned char>(bytes) == theirs);
    for (const bool is_both_ways : {false, true}) {  // osu_bw, osu_bibw
      in.Clear();
      std::vector<MPI_Request> requests;
      for (int i = 0; i < kWindow && (rank == 1 || is_both_ways); ++i) {
        VENDOR_OK(MPI_Irecv(in.data(), count, MPI_CHAR, peer, 10, MPI_COMM_WORLD,
                            &requests.emplace_back()));
      }
      for (int i = 0; i < kWindow && (rank == 0 || is_both_ways); ++i) {
        VENDOR_OK(MPI_Isend(out.data(), count, MPI_CHAR, peer, 10, MPI_COMM_WORLD,
                            &requests.emplace_back()));
      }
      VENDOR_OK(
          MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
      VENDOR_CHECK((rank == 0 && !is_both_ways) || in.Read<unsigned char>(bytes) == theirs);
      VENDOR_OK(MPI_Sendrecv(nullptr, 0, MPI_CHAR, peer, 11, nullptr, 0, MPI_CHAR, peer, 11,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
  }
}

// ---- Types with gaps ----

namespace {

constexpr int kBlocks = 700;
constexpr int kStride = 5;  // in words; the blocks have two

MPI_Datatype MakeStruct() {
  const int lengths[] = {3, 2};
  const MPI_Aint places[] = {0, 16};
  const MPI_Datatype types[] = {MPI_INT32_T, MPI_INT64_T};
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Datatype resized = MPI_DATATYPE_NULL;
  VENDOR_OK(MPI_Type_create_struct(2, lengths, places, types, &made));
  VENDOR_OK(MPI_Type_create_resized(made, 0, 40, &resized));
  VENDOR_OK(MPI_Type_commit(&resized));
  VENDOR_OK(MPI_Type_free(&made));
  return resized;
}

// The receiver's gaps keep what was in them.
void SendVectors(const Kind& kind, const Ring& ring) {
  MPI_Datatype vector = MPI_DATATYPE_NULL;
  VENDOR_OK(MPI_Type_vector(kBlocks, 2, kStride, MPI_INT64_T, &vector));
  VENDOR_OK(MPI_Type_commit(&vector));
  const size_t words = kBlocks * kStride;
  Buffer out(kind, words * 8);
  Buffer in(kind, words * 8);
  Buffer packed(kind, kBlocks * 2 * 8);
  std::vector<int64_t> values(words);
  std::vector<int64_t> expected(words, -1);
  std::vector<int64_t> dense;
  for (size_t i = 0; i < words; ++i) {
    values[i] = static_cast<int64_t>(i) * 10 + rank;
    if (i % kStride < 2) {
      expected[i] = static_cast<int64_t>(i) * 10 + ring.before;
      dense.push_back(expected[i]);
    }
  }
  out.Write(values);
  in.Write(std::vector<int64_t>(words, -1));
  VENDOR_OK(MPI_Sendrecv(out.data(), 1, vector, ring.next, 1, in.data(), 1, vector, ring.before, 1,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  VENDOR_CHECK(in.Read<int64_t>(words) == expected);
  VENDOR_OK(MPI_Sendrecv(out.data(), 1, vector, ring.next, 2, packed.data(), 2 * kBlocks,
                         MPI_INT64_T, ring.before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  VENDOR_CHECK(packed.Read<int64_t>(dense.size()) == dense);
  in.Write(std::vector<int64_t>(words, -1));
  VENDOR_OK(MPI_Sendrecv(packed.data(), 2 * kBlocks, MPI_INT64_T, ring.before, 3, in.data(), 1,
                         vector, ring.next, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  for (size_t i = 0; i < words; ++i) {
    expected[i] = i % kStride < 2 ? values[i] : -1;
  }
  VENDOR_CHECK(in.Read<int64_t>(words) == expected);
  VENDOR_OK(MPI_Type_free(&vector));
}

void SendStructs(const Kind& kind, const Ring& ring) {
  constexpr int kCount = 300;
  MPI_Datatype type = MakeStruct();
  const size_t bytes = kCount * 40;
  Buffer out(kind, bytes);
  Buffer in(kind, bytes);
  out.Fill(ring.own);
  std::vector<unsigned char> expected(bytes, 0xCC);
  const std::vector<unsigned char> theirs = Buffer::Pattern(bytes, ring.theirs);
  for (size_t i = 0; i < bytes; ++i) {
    const size_t at = i % 40;
    if (at < 12 || (at >= 16 && at < 32)) {
      expected[i] = theirs[i];
    }
  }
  MPI_Request requests[2];
  VENDOR_OK(MPI_Irecv(in.data(), kCount, type, ring.before, 1, MPI_COMM_WORLD, &requests[0]));
  VENDOR_OK(MPI_Isend(out.data(), kCount, type, ring.next, 1, MPI_COMM_WORLD, &requests[1]));
  VENDOR_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  VENDOR_CHECK(in.Read<unsigned char>(bytes) == expected);

  // By MPI_Pack and MPI_Unpack, with the packed place in the vendor's memory, too.
  int room = 0;
  VENDOR_OK(MPI_Pack_size(kCount, type, MPI_COMM_WORLD, &room));
  Buffer packed(kind, static_cast<size_t>(room));
  int at = 0;
  VENDOR_OK(MPI_Pack(in.data(), kCount, type, packed.data(), room, &at, MPI_COMM_WORLD));
  in.Clear();
  int begin = 0;
  VENDOR_OK(MPI_Unpack(packed.data(), at, &begin, in.data(), kCount, type, MPI_COMM_WORLD));
  VENDOR_CHECK(in.Read<unsigned char>(bytes) == expected);

  // Packs from ordinary memory into the vendor's and back, and for machines of another kind.
  std::vector<unsigned char> plain(bytes, 0xCC);
  packed.Clear();
  at = begin = 0;
  VENDOR_OK(MPI_Pack(theirs.data(), kCount, type, packed.data(), room, &at, MPI_COMM_WORLD));
  VENDOR_OK(MPI_Unpack(packed.data(), at, &begin, plain.data(), kCount, type, MPI_COMM_WORLD));
  VENDOR_CHECK(plain == expected);
  MPI_Aint external_room = 0;
  MPI_Aint external_at = 0;
  VENDOR_OK(MPI_Pack_external_size("external32", kCount, type, &external_room));
  Buffer external(kind, static_cast<size_t>(external_room));
  VENDOR_OK(MPI_Pack_external("external32", in.data(), kCount, type, external.data(), external_room,
                              &external_at));
  in.Clear();
  external_at = 0;
  VENDOR_OK(MPI_Unpack_external("external32", external.data(), external_room, &external_at,
                                in.data(), kCount, type));
  VENDOR_CHECK(in.Read<unsigned char>(bytes) == expected);
  VENDOR_OK(MPI_Type_free(&type));
}

// Blocks that are said by their addresses.
void SendFromBottom(const Kind& kind, const Ring& ring) {
  Buffer first(kind, 4000);
  Buffer second(kind, 4000);
  Buffer in(kind, 8000);
  first.Fill(ring.own);
  second.Fill(ring.own + 5);
  const int lengths[] = {4000, 4000};
  MPI_Aint places[2];
  VENDOR_OK(MPI_Get_address(first.data(), &places[0]));
  VENDOR_OK(MPI_Get_address(second.data(), &places[1]));
  MPI_Datatype type = MPI_DATATYPE_NULL;
  VENDOR_OK(MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &type));
  VENDOR_OK(MPI_Type_commit(&type));
  VENDOR_OK(MPI_Sendrecv(MPI_BOTTOM, 1, type, ring.next, 1, in.data(), 8000, MPI_BYTE, ring.before,
                         1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  std::vector<unsigned char> expected = Buffer::Pattern(4000, ring.theirs);
  const std::vector<unsigned char> rest = Buffer::Pattern(4000, ring.theirs + 5);
  expected.insert(expected.end(), rest.begin(), rest.end());
  VENDOR_CHECK(in.Read<unsigned char>(8000) == expected);
  VENDOR_OK(MPI_Type_free(&type));
}

}  // namespace

void SendTypes(const Kind& kind) {
  const Ring ring;
  const std::string outer = step;
  step = outer + ", vectors";
  SendVectors(kind, ring);
  step = outer + ", structs";
  SendStructs(kind, ring);
  step = outer + ", from MPI_BOTTOM";
  SendFromBottom(kind, ring);
}

// ---- Partitions and queues ----

void SendPartitions(const Kind& kind) {
  const Ring ring;
  constexpr int kPartitions = 4;
  for (const MPI_Count each : {MPI_Count{16}, MPI_Count{3000}, MPI_Count{40'000}}) {
    Buffer out(kind, static_cast<size_t>(kPartitions * each));
    Buffer in(kind, static_cast<size_t>(kPartitions * each));
    MPI_Request requests[2];
    VENDOR_OK(MPI_Precv_init(in.data(), kPartitions, each, MPI_BYTE, ring.before, 1, MPI_COMM_WORLD,
                             MPI_INFO_NULL, &requests[0]));
    VENDOR_OK(MPI_Psend_init(out.data(), kPartitions, each, MPI_BYTE, ring.next, 1, MPI_COMM_WORLD,
                             MPI_INFO_NULL, &requests[1]));
    for (unsigned round = 0; round < 3; ++round) {
      out.Fill(ring.own + round);
      in.Clear();
      VENDOR_OK(MPI_Startall(2, requests));
      for (int i = 0; i < kPartitions; ++i) {
        VENDOR_OK(MPI_Pready((i + 1) % kPartitions, requests[1]));
      }
      VENDOR_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
      VENDOR_CHECK(in.IsFilled(ring.theirs + round));
    }
    VENDOR_OK(MPI_Request_free(&requests[0]));
    VENDOR_OK(MPI_Request_free(&requests[1]));
  }
}

void SendByQueues(const Kind& kind) {
  const Ring ring;
  ferry_stream stream = nullptr;
  VENDOR_CHECK(ferry_stream_create(0, &stream) == FERRY_SUCCESS);
  MPIX_Queue queue = MPIX_QUEUE_NULL;
  VENDOR_OK(MPIX_Queue_init(&queue, MPIX_QUEUE_FERRY, &stream));
  for (const int bytes : {64, 5000, 100'000}) {
    Buffer out(kind, static_cast<size_t>(bytes));
    Buffer in(kind, static_cast<size_t>(bytes));
    MPI_Request requests[2];
    VENDOR_OK(
        MPI_Recv_init(in.data(), bytes, MPI_BYTE, ring.before, 1, MPI_COMM_WORLD, &requests[0]));
    VENDOR_OK(
        MPI_Send_init(out.data(), bytes, MPI_BYTE, ring.next, 1, MPI_COMM_WORLD, &requests[1]));
    VENDOR_OK(MPIX_Matchall(2, requests));
    for (unsigned round = 0; round < 3; ++round) {
      out.Fill(ring.own + round);
      in.Clear();
      VENDOR_OK(MPIX_Enqueue_startall(queue, 2, requests));
      VENDOR_OK(MPIX_Enqueue_waitall(queue, 2, requests));
      VENDOR_OK(MPIX_Queue_wait(queue));
      VENDOR_CHECK(in.IsFilled(ring.theirs + round));
    }
    VENDOR_OK(MPI_Request_free(&requests[0]));
    VENDOR_OK(MPI_Request_free(&requests[1]));
  }
  VENDOR_OK(MPIX_Queue_free(&queue));
  VENDOR_CHECK(ferry_stream_destroy(&stream) == FERRY_SUCCESS);
}

}  // namespace ferry::vendor_memory
