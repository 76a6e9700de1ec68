/* Repeated sends of one device buffer: how long a message takes whose data did not change since the
 * last one.
 *
 *   offload each|once|always MESSAGES BATCH_MICROSECONDS BYTES...
 *
 * In a round rank 0 has new data in its device buffer and sends them MESSAGES times to rank 1, one
 * after the other, which receives them into its heap and then answers. "each" gives the buffer to
 * the library as it is; with "once" it is an offloaded send buffer that is synchronised at the
 * beginning of the round, with "always" before each message.
 *
 * Rank 0 prints "offload BYTES MICROSECONDS" for a message, the median of several batches of rounds
 * of about the given length.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/common/shim.h"
#include "benchmarks/common/timing.h"

typedef struct {
  int rank;
  int messages;
  int once;
  int always;
  size_t size;
  char* sent;     /* device memory of rank 0 */
  char* received; /* heap of rank 1 */
  ferry_offload offload;
} Stream;

static void Round(const Stream* stream) {
  char answer = 0;
  if (stream->once) {
    BENCH_CHECK(ferry_offload_sync(stream->offload, 0, stream->size));
  }
  for (int i = 0; i < stream->messages; ++i) {
    if (stream->always) {
      BENCH_CHECK(ferry_offload_sync(stream->offload, 0, stream->size));
    }
    Send(stream->sent, stream->size, 1);
  }
  Receive(&answer, 1, 1);
}

static void Answer(const Stream* stream) {
  const char answer = 0;
  for (int i = 0; i < stream->messages; ++i) {
    Receive(stream->received, stream->size, 0);
  }
  Send(&answer, 1, 0);
}

static double Repeat(void* context, int rounds) {
  const Stream* stream = context;
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    if (stream->rank == 0) {
      Round(stream);
    } else {
      Answer(stream);
    }
  }
  return Now() - start;
}

/* The data that rank 1 received last must be rank 0's. */
static void CheckReceived(const Stream* stream) {
  for (size_t byte = 0; stream->rank == 1 && byte < stream->size; ++byte) {
    if (stream->received[byte] != 1) {
      fprintf(stderr, "offload: wrong data in a message of %zu bytes\n", stream->size);
      exit(1);
    }
    stream->received[byte] = 0;
  }
}

int main(int argc, char** argv) {
  int ranks = 0;
  Stream stream = {0};
  Start(&stream.rank, &ranks);
  const char* way = argc > 1 ? argv[1] : "";
  stream.once = strcmp(way, "once") == 0;
  stream.always = strcmp(way, "always") == 0;
  stream.messages = argc > 2 ? atoi(argv[2]) : 0;
  if (argc < 5 || ranks != 2 || stream.messages < 1 ||
      (!stream.once && !stream.always && strcmp(way, "each") != 0)) {
    fprintf(stderr,
            "usage: offload each|once|always MESSAGES BATCH_MICROSECONDS BYTES..., on 2 ranks\n");
    return 2;
  }
  const size_t largest = LargestSize(argc, argv, 4, 1);
  stream.sent = Filled("device", largest, 1);
  stream.received = Filled("heap", largest, 0);
  if (stream.once || stream.always) {
    BENCH_CHECK(ferry_offload_register(stream.sent, largest, &stream.offload));
  }
  for (int i = 4; i < argc; ++i) {
    stream.size = strtoull(argv[i], NULL, 10);
    Barrier();
    const double seconds =
        MeasureTogether(Repeat, &stream, strtod(argv[3], NULL) * 1e-6, stream.rank, ranks);
    CheckReceived(&stream);
    if (stream.rank == 0) {
      printf("offload %zu %.4f\n", stream.size, seconds * 1e6 / stream.messages);
      fflush(stdout);
    }
  }
  Barrier();
  Finish();
  return 0;
}
