// The part of a driver that NVIDIA and AMD have in common: the calls of HIP's run time follow
// CUDA's, under another prefix.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

#include "common/status.h"
#include "gpu_backends/api/types.h"
#include "gpu_backends/device/kernel_list.h"
#include "gpu_backends/driver/driver.h"
#include "gpu_backends/driver/host_steps.h"
#include "gpu_backends/driver/kernel_modules.h"
#include "gpu_backends/driver/pci.h"

namespace ferry::gpu {

// `Vendor` is a struct that has
// - its table of functions, Api, with Error, Address (where devices see memory) and IpcHandle;
// - Devices, made of the table and a DeviceList, and Scope, in which a thread calls the vendor for
//   one of them;
// - kName, the backend's; kPrefix, of all its calls; names and flags where these differ.
template <typename Vendor>
class CudaLikeDriver : public Driver {
 public:
  ~CudaLikeDriver() override { kernels_.Unload(); }

  std::string_view name() const override { return Vendor::kName; }
  std::string version() const override { return version_; }
  int device_count() const override { return devices_.device_count(); }

  Status Export(void* base, IpcHandle* handle) override {
    const StatusOr<int> device = DeviceOf(base);
    FERRY_RETURN_IF_ERROR(device.status());
    typename Vendor::IpcHandle native{};
    static_assert(sizeof(native) == sizeof(handle->opaque));
    FERRY_RETURN_IF_ERROR(
        Call(*device, "IpcGetMemHandle", api_.ipc_get_mem_handle, &native, ToAddress(base)));
    std::memcpy(handle->opaque.data(), &native, sizeof(native));
    return {};
  }

  StatusOr<NativeStream> CreateStream(int device) override {
    StatusOr<NativeStream> stream = Make(device, Vendor::kStreamCreate, api_.*Vendor::kCreateStream,
                                         Vendor::kStreamNonBlocking);
    if (stream.ok()) {
      std::lock_guard lock(own_streams_mutex_);
      own_streams_.insert(*stream);
    }
    return stream;
  }
  void DestroyStream(int device, NativeStream stream) override {
    {
      std::lock_guard lock(own_streams_mutex_);
      if (own_streams_.erase(stream) == 0) {
        return;  // the application's
      }
    }
    Scope scope(devices_, device);
    (void)api_.stream_destroy(stream);
  }
  Status QueryStream(int device, NativeStream stream) override {
    return Call(device, "StreamQuery", api_.stream_query, stream);
  }

  StatusOr<NativeEvent> CreateEvent(int device) override {
    return Make(device, Vendor::kEventCreate, api_.*Vendor::kCreateEvent,
                Vendor::kEventDisableTiming);
  }
  void DestroyEvent(int device, NativeEvent event) override {
    Scope scope(devices_, device);
    (void)api_.event_destroy(event);
  }
  Status RecordEvent(int device, NativeStream stream, NativeEvent event) override {
    return Call(device, "EventRecord", api_.event_record, event, stream);
  }
  Status QueryEvent(int device, NativeEvent event) override {
    return Call(device, "EventQuery", api_.event_query, event);
  }
  Status WaitEvent(int device, NativeStream stream, NativeEvent event) override {
    return Call(device, "StreamWaitEvent", api_.stream_wait_event, stream, event, /*flags=*/0);
  }

  Status LetKernelsReach(int device, int other) override {
    int can = 0;
    FERRY_RETURN_IF_ERROR(
        Check("DeviceCanAccessPeer",
              api_.device_can_access_peer(&can, devices_.native(device), devices_.native(other))));
    if (can == 0) {
      return {ErrorCode::kUnsupported, "device " + std::to_string(device) +
                                           " does not reach the memory of device " +
                                           std::to_string(other)};
    }
    const Status opened = EnablePeerAccess(device, other);
    return opened.code() == ErrorCode::kAlreadyExists ? Status() : opened;
  }

  Status WriteWord(int device, NativeStream stream, uint64_t* word, uint64_t value) override {
    return CallWith(device, word, "StreamWriteValue64", [&](Address address) {
      return api_.stream_write_value64(stream, address, value, /*flags=*/0);
    });
  }

  Status LoadKernels(int device) override { return kernels_.Load(device); }
  KernelPowers kernel_powers(int device) const override {
    return {true, HasAttribute(Vendor::kHostNativeAtomics, device), true};
  }
  Status Launch(int device, NativeStream stream, Kernel kernel, uint64_t threads,
                std::span<const KernelArgument> arguments) override {
    const StatusOr<void*> function = kernels_.Find(device, kernel);
    FERRY_RETURN_IF_ERROR(function.status());
    Scope scope(devices_, device);
    FERRY_RETURN_IF_ERROR(scope.status());
    std::array<uint64_t, kMostKernelArguments> values{};
    std::array<void*, kMostKernelArguments> pointers{};
    for (size_t i = 0; i < arguments.size(); ++i) {
      values[i] = arguments[i].value;
      if (arguments[i].is_address && values[i] != 0) {
        const StatusOr<Address> address = DeviceAddress(reinterpret_cast<const void*>(values[i]));
        FERRY_RETURN_IF_ERROR(address.status());
        values[i] = reinterpret_cast<uint64_t>(ToPointer(*address));
      }
      pointers[i] = &values[i];
    }
    const KernelModules::Shape shape = KernelModules::ShapeOf(threads);
    return Check(Vendor::kLaunchKernel,
                 (api_.*Vendor::kLaunch)(*function, shape.groups, 1, 1, shape.group_threads, 1, 1,
                                         /*shared_bytes=*/0, stream, pointers.data(), nullptr));
  }

  Status EnqueueHostStep(int device, NativeStream stream, HostStep step, void* argument) override {
    void* held = HoldHostStep(step, argument);
    Status status = EnqueueHeldStep(device, stream, held);
    if (!status.ok()) {
      DropHostStep(held);
    }
    return status;
  }
  bool host_steps_hold() const override { return false; }

 protected:
  using Api = typename Vendor::Api;
  using Error = typename Vendor::Error;
  using Address = typename Vendor::Address;
  using Scope = typename Vendor::Scope;

  // Kernel images of `formats` are tried in that order, if the vendor loads any.
  CudaLikeDriver(const Api& api, typename Vendor::DeviceList devices, std::string version,
                 std::initializer_list<ImageFormat> formats, bool loads_modules)
      : api_(api),
        devices_(api_, std::move(devices)),
        version_(std::move(version)),
        kernels_(devices_.device_count(), formats,
                 loads_modules ? Status()
                               : Status(ErrorCode::kUnsupported, version_ + " loads no modules"),
                 {.load = [this](int device,
                                 const DeviceImage& image) { return LoadModule(device, image); },
                  .find =
                      [this](int device, void* module, const char* kernel) {
                        return Make(device, "ModuleGetFunction", api_.module_get_function, module,
                                    kernel);
                      },
                  .unload =
                      [this](int device, void* module) {
                        Scope scope(devices_, device);
                        (void)api_.module_unload(module);
                      }}) {}

  // The device of memory that the vendor knows.
  virtual StatusOr<int> DeviceOf(const void* pointer) = 0;
  // The address at which devices see memory that the vendor knows. Called in a scope.
  virtual StatusOr<Address> DeviceAddress(const void* pointer) = 0;
  virtual StatusOr<void*> LoadModule(int device, const DeviceImage& image) = 0;
  // kAlreadyExists: it was enabled before.
  virtual Status EnablePeerAccess(int device, int other) = 0;
  // Enqueues a call of RunHostStep.
  virtual Status EnqueueHeldStep(int device, NativeStream stream, void* held) = 0;

  static Address ToAddress(const void* pointer) {
    return reinterpret_cast<Address>(const_cast<void*>(pointer));
  }
  static void* ToPointer(Address address) { return reinterpret_cast<void*>(address); }

  bool HasAttribute(int attribute, int device) const {
    int value = 0;
    return api_.device_get_attribute(&value, attribute, devices_.native(device)) == 0 && value != 0;
  }

  // Describes a device as both vendors do: all fields but free memory and dma-bufs.
  StatusOr<DeviceInfo> Describe(int device) {
    const auto native = devices_.native(device);
    char name[256] = {};
    FERRY_RETURN_IF_ERROR(
        Check("DeviceGetName", api_.device_get_name(name, sizeof(name) - 1, native)));
    DeviceInfo info;
    info.name = name;
    size_t total_bytes = 0;
    FERRY_RETURN_IF_ERROR(Check("DeviceTotalMem", api_.device_total_mem(&total_bytes, native)));
    info.total_bytes = total_bytes;
    char address[64] = {};
    if (api_.device_get_pci_bus_id(address, sizeof(address) - 1, native) == 0) {
      info.pci_address = KernelPciAddress(address);
      info.numa_node = PciNumaNode(info.pci_address);
    }
    const Status kernels = kernels_.Known(device);
    info.kernels = kernels.ok();
    info.no_kernels_because = kernels.message();
    info.stream_words = has_stream_words(device) ? StreamWords::kNative
                        : info.kernels           ? StreamWords::kKernel
                                                 : StreamWords::kHelper;
    info.ipc = true;
    info.managed = HasAttribute(Vendor::kManagedMemory, device);
    return info;
  }

  // Returns the status for the result of a call; `call` is its name without the prefix.
  Status Check(const char* call, Error error) const {
    return error == 0 ? Status() : api_.Check((std::string(Vendor::kPrefix) + call).c_str(), error);
  }
  // Calls `function` for the device.
  template <typename... Parameters, typename... Arguments>
  Status Call(int device, const char* call, Error (*function)(Parameters...),
              Arguments... arguments) {
    Scope scope(devices_, device);
    FERRY_RETURN_IF_ERROR(scope.status());
    return Check(call, function(arguments...));
  }
  // Returns what `function` makes for the device: it stores that through its first parameter.
  template <typename Object, typename... Parameters, typename... Arguments>
  StatusOr<void*> Make(int device, const char* call, Error (*function)(Object*, Parameters...),
                       Arguments... arguments) {
    Object object{};
    FERRY_RETURN_IF_ERROR(Call(device, call, function, &object, arguments...));
    return reinterpret_cast<void*>(object);
  }
  // Calls function(address), with the address at which the device sees `pointer`.
  template <typename Function>
  Status CallWith(int device, const void* pointer, const char* call, Function&& function) {
    Scope scope(devices_, device);
    FERRY_RETURN_IF_ERROR(scope.status());
    const StatusOr<Address> address = DeviceAddress(pointer);
    FERRY_RETURN_IF_ERROR(address.status());
    return Check(call, function(*address));
  }

  const Api api_;
  typename Vendor::Devices devices_;

 private:
  const std::string version_;
  KernelModules kernels_;
  std::mutex own_streams_mutex_;
  std::unordered_set<NativeStream> own_streams_;  // as opposed to those of the application
};

}  // namespace ferry::gpu
