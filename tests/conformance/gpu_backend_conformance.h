// The suite that every GPU backend passes. A backend's test binary links
// //tests/conformance:gpu_backend_conformance and defines ConformanceBackends(); nothing else.
//
// Tests touch device memory only through streams, so they hold where a CPU cannot reach it. A
// backend whose factory says kNotFound or kUnsupported (no device, no driver) skips every test,
// with that reason.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "gpu_backends/api/backend.h"

namespace ferry::gpu {

struct ConformanceBackend {
  std::string name;
  std::function<StatusOr<std::unique_ptr<GpuBackend>>()> create;
};

// Defined by the backend's test: the backends, or variants of one, to run the suite on.
std::vector<ConformanceBackend> ConformanceBackends();

// A backend as it is, or kUnsupported where streams of its first device wait for words neither by
// themselves nor by kernels: a build may have none.
StatusOr<std::unique_ptr<GpuBackend>> WithWords(StatusOr<std::unique_ptr<GpuBackend>> backend);

// Runs in place of the tests when a test started the program as another process
// (gpu_conformance_child.h). Returns the exit code, or -1 if it was not.
int RunConformanceChild(int argc, char** argv);

// Names the status when it is not ok.
#define FERRY_EXPECT_OK(expression)                                        \
  do {                                                                     \
    const ::ferry::Status ferry_test_status_ = (expression);               \
    EXPECT_TRUE(ferry_test_status_.ok()) << ferry_test_status_.ToString(); \
  } while (false)

#define FERRY_EXPECT_CODE(code_value, expression)                        \
  do {                                                                   \
    const ::ferry::Status ferry_test_status_ = (expression);             \
    EXPECT_EQ(::ferry::ErrorCode::code_value, ferry_test_status_.code()) \
        << ferry_test_status_.ToString();                                \
  } while (false)

using Bytes = std::vector<uint8_t>;

// `size` bytes that depend on `seed` and on their place.
Bytes Pattern(uint64_t size, uint8_t seed);

// Copies between device memory and a vector, through a stream of their own.
Status Upload(GpuBackend& backend, void* destination, const Bytes& bytes);
StatusOr<Bytes> Download(GpuBackend& backend, const void* source, uint64_t size);

struct MemoryReleaser {
  GpuBackend* backend;
  void operator()(void* data) const { FERRY_EXPECT_OK(backend->Free(data)); }
};

// Owns memory of a backend; may own none.
class Memory {
 public:
  Memory(GpuBackend* backend, void* data) : data_(data, MemoryReleaser{backend}) {}

  void* data() const { return data_.get(); }
  uint8_t* bytes() const { return static_cast<uint8_t*>(data()); }
  uint64_t* words() const { return static_cast<uint64_t*>(data()); }
  // For tests that free it themselves.
  void* Release() { return data_.release(); }

 private:
  std::unique_ptr<void, MemoryReleaser> data_;
};

class GpuBackendConformance : public testing::TestWithParam<ConformanceBackend> {
 protected:
  void SetUp() override;

  GpuBackend& backend() { return *backend_; }
  // A stream of the first device, for tests that need one; made when it is first asked for.
  Stream& stream();

  // These fail the test and return null if the backend refuses.
  Memory Device(uint64_t size_bytes);
  Memory Pinned(uint64_t size_bytes);  // filled with zeroes
  std::unique_ptr<Stream> NewStream();
  std::unique_ptr<Event> NewEvent();
  // Compares what the memory holds, by way of a stream.
  void ExpectHolds(const void* memory, const Bytes& expected);
  // `answer` is a stream's answer to one of Ferry's kernels on the first device: ok, or
  // kUnsupported if the device has none, which skips the test.
  void ExpectKernels(const Status& answer);

 private:
  std::unique_ptr<GpuBackend> backend_;
  std::unique_ptr<Stream> stream_;
};

// A CPU's accesses to a word that streams read or write.
void StoreFromCpu(uint64_t* word, uint64_t value);
uint64_t LoadFromCpu(uint64_t* word);

}  // namespace ferry::gpu
