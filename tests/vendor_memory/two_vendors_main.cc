// two_vendors cuda|hip: a program with the libraries of two vendors in use, and memory of both.
// That of the vendor which Ferry uses is sent; that of the other one is refused in words; ordinary
// memory goes as ever. The named library comes into use first. Two ranks.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ferry/ferry.h"

namespace {

void Require(bool ok, const char* what) {
  if (!ok) {
    std::fprintf(stderr, "rank %d: %s: %s\n", ferry_rank(), what, ferry_last_error());
    std::exit(1);
  }
}
#define REQUIRE(condition) Require((condition), #condition)

template <typename... Arguments>
void Call(void* library, const char* name, Arguments... arguments) {
  auto* const function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  Require(function != nullptr && function(arguments...) == 0, name);
}

void* cuda = nullptr;
void* hip = nullptr;

void StartCuda() {
  cuda = dlopen("libcuda.so.1", RTLD_NOW);
  REQUIRE(cuda != nullptr);
  void* context = nullptr;
  Call(cuda, "cuInit", 0U);
  Call(cuda, "cuDevicePrimaryCtxRetain", &context, 0);
  Call(cuda, "cuCtxPushCurrent_v2", context);
}

void StartHip() {
  hip = dlopen("libamdhip64.so.6", RTLD_NOW);
  REQUIRE(hip != nullptr);
}

constexpr size_t kBytes = 30'000;

// Returns true if the memory was sent: to the other rank, which receives into ordinary memory.
bool Sends(void* memory, const std::vector<char>& content) {
  const int peer = 1 - ferry_rank();
  std::vector<char> in(kBytes);
  ferry_request receive = FERRY_REQUEST_NULL;
  REQUIRE(ferry_irecv(in.data(), kBytes, peer, 1, &receive) == FERRY_SUCCESS);
  const int code = ferry_send(memory, kBytes, peer, 1);
  if (code != FERRY_SUCCESS) {
    REQUIRE(code == FERRY_ERR_BUFFER);
    REQUIRE(std::strstr(ferry_last_error(), "there is no memory at 0x") != nullptr);
    REQUIRE(ferry_cancel(receive) == FERRY_SUCCESS);
    REQUIRE(ferry_wait(&receive, nullptr) != -1);
    return false;
  }
  REQUIRE(ferry_wait(&receive, nullptr) == FERRY_SUCCESS);
  REQUIRE(in == content);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_cuda_first = argc > 1 && std::string(argv[1]) == "cuda";
  if (is_cuda_first) {
    StartCuda();
  } else {
    StartHip();
  }
  REQUIRE(ferry_init(FERRY_THREAD_SINGLE, nullptr) == FERRY_SUCCESS);
  if (is_cuda_first) {
    StartHip();
  } else {
    StartCuda();
  }
  void* of_cuda = nullptr;
  void* of_hip = nullptr;
  Call(cuda, "cuMemAlloc_v2", &of_cuda, kBytes);
  Call(hip, "hipMalloc", &of_hip, kBytes);
  std::vector<char> content(kBytes);
  for (size_t i = 0; i < kBytes; ++i) {
    content[i] = static_cast<char>(i * 7);
  }
  Call(cuda, "cuMemcpy", of_cuda, static_cast<void*>(content.data()), kBytes);
  constexpr int kHostToDevice = 1;
  Call(hip, "hipMemcpy", of_hip, static_cast<void*>(content.data()), kBytes, kHostToDevice);
  int sent = 0;
  for (int round = 0; round < 3; ++round) {
    sent += Sends(of_cuda, content) ? 1 : 0;
    REQUIRE(ferry_barrier() == FERRY_SUCCESS);
    sent += Sends(of_hip, content) ? 1 : 0;
    // The other rank's receive that is cancelled must not take what follows.
    REQUIRE(ferry_barrier() == FERRY_SUCCESS);
    REQUIRE(Sends(content.data(), content));
    REQUIRE(ferry_barrier() == FERRY_SUCCESS);
  }
  REQUIRE(sent == 3);  // those of one vendor
  if (ferry_rank() == 0) {
    std::printf("two vendors: ok\n");
  }
  return ferry_finalize() == FERRY_SUCCESS ? 0 : 1;
}
