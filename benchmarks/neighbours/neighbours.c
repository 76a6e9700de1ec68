/* Measures the cost to the others of a node that stands still, is slow, or loses packets: ranks 0
 * and 1 live on node 0, rank 2 on node 1, rank 3 on node 2.
 *
 *   neighbours busy|idle MICROSECONDS
 *
 * busy: rank 0 receives 100 messages of 2 MiB at a time from rank 3, all the time. At SIGUSR1
 * rank 1 measures, for so long each, the traffic between it and rank 2, seven times, and prints
 * the medians: "bandwidth MB/s" of messages of 2 MiB, eight at a time, and "latency us" of 8
 * bytes, one way. Then all wait to be ended. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ferry/ferry.h"

enum { kBytes = 2 << 20, kFromOther = 100, kWindow = 8, kRounds = 7 };
enum { kData = 1, kWord = 2 };

static volatile sig_atomic_t is_asked = 0;

static void Ask(int number) {
  (void)number;
  is_asked = 1;
}

static void Check(int code) {
  if (code != FERRY_SUCCESS) {
    fprintf(stderr, "rank %d: %s\n", ferry_rank(), ferry_last_error());
    exit(1);
  }
}

static double NowUs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int Compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

static void Tell(const char* what, double* figures) {
  qsort(figures, kRounds, sizeof(*figures), Compare);
  printf("%s %.3f\n", what, figures[kRounds / 2]);
  fflush(stdout);
}

static void Word(int word) { Check(ferry_send(&word, sizeof(word), 2, kWord)); }

static void ReceiveWindow(char* data) {
  ferry_request requests[kWindow];
  for (int i = 0; i < kWindow; ++i) {
    Check(ferry_irecv(data + (size_t)i * kBytes, kBytes, 2, kData, &requests[i]));
  }
  Word(1);
  Check(ferry_waitall(kWindow, requests, NULL));
}

static void Measure(char* data, double batch_us) {
  double figures[kRounds];
  for (int round = -1; round < kRounds; ++round) { /* the first one does not count */
    const double begun_us = NowUs();
    double took_us = 0;
    double bytes = 0;
    do {
      ReceiveWindow(data);
      bytes += (double)kWindow * kBytes;
      took_us = NowUs() - begun_us;
    } while (took_us < batch_us);
    figures[round < 0 ? 0 : round] = bytes / took_us;
  }
  Tell("bandwidth", figures);
  for (int round = -1; round < kRounds; ++round) {
    const double begun_us = NowUs();
    double took_us = 0;
    long trips = 0;
    do {
      Word(2);
      Check(ferry_recv(data, 8, 2, kData, NULL));
      ++trips;
      took_us = NowUs() - begun_us;
    } while (took_us < batch_us);
    figures[round < 0 ? 0 : round] = took_us / (double)trips / 2;
  }
  Tell("latency", figures);
}

static void Serve(const char* data) {
  for (;;) {
    int word = 0;
    Check(ferry_recv(&word, sizeof(word), 1, kWord, NULL));
    ferry_request requests[kWindow];
    for (int i = 0; word == 1 && i < kWindow; ++i) {
      Check(ferry_isend(data + (size_t)i * kBytes, kBytes, 1, kData, &requests[i]));
    }
    if (word == 1) {
      Check(ferry_waitall(kWindow, requests, NULL));
    } else {
      Check(ferry_send(data, 8, 1, kData));
    }
  }
}

static void Flood(char* data, int receives) {
  ferry_request requests[kFromOther];
  for (long round = 0;; ++round) {
    for (int i = 0; i < kFromOther; ++i) {
      Check(receives ? ferry_irecv(data, kBytes, 3, kData, &requests[i])
                     : ferry_isend(data, kBytes, 0, kData, &requests[i]));
    }
    if (receives && round == 0) {
      printf("busy\n");
      fflush(stdout);
    }
    Check(ferry_waitall(kFromOther, requests, NULL));
  }
}

int main(int argc, char** argv) {
  signal(SIGUSR1, Ask);
  if (argc != 3) {
    return 2;
  }
  Check(ferry_init(FERRY_THREAD_SINGLE, NULL));
  const int is_busy = strcmp(argv[1], "busy") == 0;
  void* memory = NULL;
  Check(ferry_alloc((size_t)kWindow * kBytes, FERRY_MEMORY_HOST, 0, &memory));
  const int rank = ferry_rank();
  if (rank == 2) {
    Serve(memory);
  }
  if (is_busy && (rank == 0 || rank == 3)) {
    Flood(memory, rank == 0);
  }
  if (rank == 1) {
    ReceiveWindow(memory); /* they know each other */
    printf("rank 1 is %ld\n", (long)getpid());
    fflush(stdout);
    while (is_asked == 0) {
      usleep(1000);
    }
    Measure(memory, atof(argv[2]));
  }
  for (;;) {
    pause();
  }
}
