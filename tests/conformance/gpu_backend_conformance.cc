#include "tests/conformance/gpu_backend_conformance.h"

#include <cstring>
#include <utility>

#include "shm/atomic.h"

namespace ferry::gpu {

Bytes Pattern(uint64_t size, uint8_t seed) {
  Bytes bytes(size);
  for (uint64_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<uint8_t>(seed + i * 7 + (i >> 8));
  }
  return bytes;
}

Status Upload(GpuBackend& backend, void* destination, const Bytes& bytes) {
  StatusOr<std::unique_ptr<Stream>> stream = backend.CreateStream(0);
  FERRY_RETURN_IF_ERROR(stream.status());
  FERRY_RETURN_IF_ERROR((*stream)->CopyAsync(destination, bytes.data(), bytes.size()));
  return (*stream)->Synchronize();
}

StatusOr<Bytes> Download(GpuBackend& backend, const void* source, uint64_t size) {
  StatusOr<std::unique_ptr<Stream>> stream = backend.CreateStream(0);
  FERRY_RETURN_IF_ERROR(stream.status());
  Bytes bytes(size);
  FERRY_RETURN_IF_ERROR((*stream)->CopyAsync(bytes.data(), source, size));
  FERRY_RETURN_IF_ERROR((*stream)->Synchronize());
  return bytes;
}

StatusOr<std::unique_ptr<GpuBackend>> WithWords(StatusOr<std::unique_ptr<GpuBackend>> backend) {
  if (backend.ok()) {
    const StatusOr<DeviceInfo> info = (*backend)->GetDeviceInfo(0);
    if (info.ok() && info->stream_words == StreamWords::kHelper) {
      return Status(ErrorCode::kUnsupported, "no words: " + info->no_kernels_because);
    }
  }
  return backend;
}

void GpuBackendConformance::SetUp() {
  StatusOr<std::unique_ptr<GpuBackend>> created = GetParam().create();
  if (created.status().code() == ErrorCode::kNotFound ||
      created.status().code() == ErrorCode::kUnsupported) {
    GTEST_SKIP() << created.status().ToString();
  }
  ASSERT_TRUE(created.ok()) << created.status().ToString();
  backend_ = std::move(*created);
}

Stream& GpuBackendConformance::stream() {
  if (stream_ == nullptr) {
    stream_ = NewStream();
  }
  return *stream_;
}

Memory GpuBackendConformance::Device(uint64_t size_bytes) {
  StatusOr<void*> data = backend_->AllocateDevice(0, size_bytes);
  FERRY_EXPECT_OK(data.status());
  return {backend_.get(), data.ok() ? *data : nullptr};
}

Memory GpuBackendConformance::Pinned(uint64_t size_bytes) {
  StatusOr<void*> data = backend_->AllocatePinned(size_bytes);
  FERRY_EXPECT_OK(data.status());
  if (data.ok()) {
    std::memset(*data, 0, size_bytes);
  }
  return {backend_.get(), data.ok() ? *data : nullptr};
}

std::unique_ptr<Stream> GpuBackendConformance::NewStream() {
  StatusOr<std::unique_ptr<Stream>> stream = backend_->CreateStream(0);
  FERRY_EXPECT_OK(stream.status());
  return stream.ok() ? std::move(*stream) : nullptr;
}

std::unique_ptr<Event> GpuBackendConformance::NewEvent() {
  StatusOr<std::unique_ptr<Event>> event = backend_->CreateEvent(0);
  FERRY_EXPECT_OK(event.status());
  return event.ok() ? std::move(*event) : nullptr;
}

void GpuBackendConformance::ExpectHolds(const void* memory, const Bytes& expected) {
  const StatusOr<Bytes> bytes = Download(*backend_, memory, expected.size());
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  EXPECT_EQ(*bytes, expected);
}

void GpuBackendConformance::ExpectKernels(const Status& answer) {
  const StatusOr<DeviceInfo> info = backend().GetDeviceInfo(0);
  ASSERT_TRUE(info.ok()) << info.status().ToString();
  if (!info->kernels && answer.code() == ErrorCode::kUnsupported) {
    GTEST_SKIP() << answer.message();
  }
  EXPECT_TRUE(answer.ok()) << answer.ToString();
}

void StoreFromCpu(uint64_t* word, uint64_t value) { shm::StoreRelease(*word, value); }

uint64_t LoadFromCpu(uint64_t* word) { return shm::LoadAcquire(*word); }

INSTANTIATE_TEST_SUITE_P(Gpu, GpuBackendConformance, testing::ValuesIn(ConformanceBackends()),
                         [](const auto& info) { return info.param.name; });

}  // namespace ferry::gpu

int main(int argc, char** argv) {
  const int child_exit_code = ferry::gpu::RunConformanceChild(argc, argv);
  if (child_exit_code >= 0) {
    return child_exit_code;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
