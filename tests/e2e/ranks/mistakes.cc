// Makes every mistake that a program can make in its calls, and prints the answers, one line each:
// the mistake, the code, the sentence. After each one the two ranks exchange messages of two paths:
// a mistake costs nothing but itself.
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"

namespace {

constexpr int kTag = 7;
constexpr size_t kLarge = size_t{16} << 20;  // fetched by the receiver, never copied ahead

int self = -1;

int Other() { return 1 - self; }

void Tell(const char* mistake, int code) {
  if (self == 0) {
    std::printf("%s: %d %s\n", mistake, code, code == FERRY_SUCCESS ? "" : ferry_last_error());
    std::fflush(stdout);
  }
}

void Exchange(uint64_t number) {
  for (const size_t size_bytes : {size_t{20}, size_t{300000}}) {
    std::vector<uint8_t> sent(size_bytes);
    std::vector<uint8_t> received(size_bytes);
    ferry::ranks::Fill(sent.data(), size_bytes, number);
    ferry_request request;
    CHECK_OK(ferry_irecv(received.data(), size_bytes, Other(), kTag, &request));
    CHECK_OK(ferry_send(sent.data(), size_bytes, Other(), kTag));
    CHECK_OK(ferry_wait(&request, nullptr));
    CHECK_BYTES(received.data(), size_bytes, number);
  }
}

void Ranks() {
  int value = 0;
  ferry_request request;
  Tell("send to a rank beyond the last", ferry_send(&value, 4, 2, kTag));
  Tell("send to any rank", ferry_isend(&value, 4, FERRY_ANY_SOURCE, kTag, &request));
  Tell("receive from a negative rank", ferry_irecv(&value, 4, -2, kTag, &request));
}

void Tags() {
  int value = 0;
  ferry_request request;
  Tell("negative tag", ferry_isend(&value, 4, Other(), -1, &request));
  Tell("tag beyond the largest", ferry_isend(&value, 4, Other(), FERRY_TAG_MAX + 1, &request));
  Tell("receive of a negative tag", ferry_irecv(&value, 4, Other(), -2, &request));
}

void Requests() {
  int value = 0;
  Tell("no buffer", ferry_send(nullptr, 4, Other(), kTag));
  Tell("nowhere to put the request", ferry_isend(&value, 4, Other(), kTag, nullptr));
  ferry_request never = 0x123400005678ULL;
  Tell("request that never was", ferry_wait(&never, nullptr));
}

// The receiver learns of it and keeps the bytes that fit; the sender has done nothing wrong.
void Truncation(size_t sent_bytes, const char* mistake) {
  const size_t kept_bytes = sent_bytes / 3;
  std::vector<uint8_t> sent(sent_bytes);
  std::vector<uint8_t> received(sent_bytes, 0xee);
  ferry::ranks::Fill(sent.data(), sent_bytes, 99);
  ferry_request request;
  CHECK_OK(ferry_irecv(received.data(), kept_bytes, Other(), kTag, &request));
  CHECK_OK(ferry_send(sent.data(), sent_bytes, Other(), kTag));
  ferry_status status;
  Tell(mistake, ferry_wait(&request, &status));
  CHECK_EQ(status.error, FERRY_ERR_TRUNCATED);
  CHECK_BYTES(received.data(), kept_bytes, 99);
  for (size_t i = kept_bytes; i < sent_bytes; ++i) {
    CHECK_EQ(received[i], 0xee);
  }
}

void Allocating() {
  void* memory = nullptr;
  Tell("more than the heap", ferry_alloc(size_t{1} << 50, FERRY_MEMORY_HOST, 0, &memory));
  Tell("more than the device", ferry_alloc(size_t{1} << 50, FERRY_MEMORY_DEVICE, 0, &memory));
  Tell("device that is none", ferry_alloc(100, FERRY_MEMORY_DEVICE, 99, &memory));
  Tell("nowhere to put the memory", ferry_alloc(100, FERRY_MEMORY_HOST, 0, nullptr));
}

void Freeing() {
  int value = 0;
  Tell("free of what was not allocated", ferry_free(&value));
  void* memory = nullptr;
  CHECK_OK(ferry_alloc(kLarge, FERRY_MEMORY_HOST, 0, &memory));
  ferry_request request;
  CHECK_OK(ferry_irecv(memory, kLarge, Other(), kTag, &request));
  Tell("free of a buffer in flight", ferry_free(memory));
  std::vector<uint8_t> sent(kLarge);
  ferry::ranks::Fill(sent.data(), kLarge, 5);
  CHECK_OK(ferry_send(sent.data(), kLarge, Other(), kTag));
  CHECK_OK(ferry_wait(&request, nullptr));
  CHECK_BYTES(memory, kLarge, 5);  // it was kept, and so was the message
  CHECK_OK(ferry_free(memory));
  Tell("free a second time", ferry_free(memory));
}

void Registering() {
  std::vector<uint8_t> own(10000);
  CHECK_OK(ferry_register(own.data(), own.size()));
  Tell("register twice", ferry_register(own.data(), own.size()));
  Tell("register a part again", ferry_register(own.data() + 5000, 100));
  void* memory = nullptr;
  CHECK_OK(ferry_alloc(100, FERRY_MEMORY_HOST, 0, &memory));
  Tell("register what Ferry allocated", ferry_register(memory, 100));
  CHECK_OK(ferry_free(memory));
  Tell("free what was registered", ferry_free(own.data()));
  ferry_request request;
  CHECK_OK(ferry_irecv(own.data(), own.size(), Other(), kTag, &request));
  Tell("deregister a buffer in flight", ferry_deregister(own.data()));
  const std::vector<uint8_t> sent(own.size());
  CHECK_OK(ferry_send(sent.data(), sent.size(), Other(), kTag));
  CHECK_OK(ferry_wait(&request, nullptr));
  CHECK_OK(ferry_deregister(own.data()));
  Tell("deregister twice", ferry_deregister(own.data()));
  Tell("register nothing", ferry_register(own.data(), 0));
}

void Offloading() {
  constexpr size_t kBytes = 10000;
  std::vector<uint8_t> own(kBytes);
  ferry_offload offload = FERRY_OFFLOAD_NULL;
  ferry_offload another = FERRY_OFFLOAD_NULL;
  Tell("offload nothing", ferry_offload_register(own.data(), 0, &offload));
  Tell("nowhere to put the handle", ferry_offload_register(own.data(), kBytes, nullptr));
  Tell("offload more than the heap", ferry_offload_register(own.data(), size_t{1} << 40, &offload));
  CHECK_OK(ferry_offload_register(own.data(), kBytes, &offload));
  Tell("offload a part again", ferry_offload_register(own.data() + 9999, 1, &another));
  Tell("synchronise beyond the end", ferry_offload_sync(offload, 5000, 5001));
  Tell("synchronise from beyond the end", ferry_offload_sync(offload, 10001, FERRY_OFFLOAD_TO_END));
  CHECK_OK(ferry_offload_sync(offload, 0, 5000));
  Tell("send what was not synchronised", ferry_send(own.data(), kBytes, Other(), kTag));
  CHECK_OK(ferry_offload_deregister(&offload));
  void* memory = nullptr;
  CHECK_OK(ferry_alloc(kLarge, FERRY_MEMORY_HOST, 0, &memory));
  CHECK_OK(ferry_offload_register(memory, kLarge, &offload));
  Tell("free what is offloaded", ferry_free(memory));
  ferry::ranks::Fill(memory, kLarge, 6);
  CHECK_OK(ferry_offload_sync(offload, 0, FERRY_OFFLOAD_TO_END));
  ferry_request request;
  CHECK_OK(ferry_isend(memory, kLarge, Other(), kTag, &request));
  Tell("synchronise in flight", ferry_offload_sync(offload, 4096, 1));
  Tell("deregister an offloaded buffer in flight", ferry_offload_deregister(&offload));
  // Neither rank receives the message until both have reported their errors.
  CHECK_OK(ferry_send(nullptr, 0, Other(), kTag + 1));
  CHECK_OK(ferry_recv(nullptr, 0, Other(), kTag + 1, nullptr));
  std::vector<uint8_t> received(kLarge);
  CHECK_OK(ferry_recv(received.data(), kLarge, Other(), kTag, nullptr));
  CHECK_OK(ferry_wait(&request, nullptr));
  CHECK_BYTES(received.data(), kLarge, 6);
  another = offload;
  CHECK_OK(ferry_offload_deregister(&offload));
  Tell("synchronise what was deregistered", ferry_offload_sync(another, 0, 1));
  Tell("deregister an offloaded buffer twice", ferry_offload_deregister(&another));
  CHECK_OK(ferry_free(memory));
}

// The program returns memory of its own to the kernel while a message is to be fetched from it,
// registered or not: both ends are told.
void Unmapping(bool registered, const char* mistake) {
  const auto map = [] {
    return mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  void* sent = map();
  if (registered) {
    CHECK_OK(ferry_register(sent, kLarge));
  }
  if (self == 0) {
    ferry_request request;
    CHECK_OK(ferry_isend(sent, kLarge, Other(), kTag, &request));
    munmap(sent, kLarge);
    CHECK_OK(ferry_send(nullptr, 0, Other(), kTag + 1));
    Tell(mistake, ferry_wait(&request, nullptr));
  } else {
    CHECK_OK(ferry_recv(nullptr, 0, Other(), kTag + 1, nullptr));
    std::vector<uint8_t> received(kLarge);
    CHECK_EQ(ferry_recv(received.data(), kLarge, Other(), kTag, nullptr), FERRY_ERR_BUFFER);
    munmap(sent, kLarge);
  }
  if (registered) {
    CHECK_OK(ferry_deregister(sent));
  }
}

}  // namespace

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  CHECK_EQ(ferry_size(), 2);
  self = ferry_rank();
  Tell("second ferry_init", ferry_init(FERRY_THREAD_SINGLE, nullptr));
  uint64_t number = 0;
  Exchange(++number);
  for (void (*mistakes)() : {Ranks, Tags, Requests, Allocating, Freeing, Registering, Offloading}) {
    mistakes();
    Exchange(++number);
  }
  Truncation(24, "small truncated receive");
  Exchange(++number);
  Truncation(kLarge, "large truncated receive");
  Exchange(++number);
  Unmapping(false, "unmapped in flight");
  Exchange(++number);
  Unmapping(true, "unmapped while registered");
  Exchange(++number);
  CHECK_OK(ferry_finalize());
  const int value = 0;
  Tell("after the end", ferry_send(&value, 4, Other(), kTag));
}
