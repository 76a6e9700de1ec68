#include "gpu_backends/level_zero/level_zero_kernels.h"

#include <algorithm>
#include <array>
#include <string>

namespace ferry::gpu {
namespace {

// The text of a module's build log, for messages.
std::string TakeLog(const LevelZeroApi& api, ze_module_build_log_handle_t log) {
  size_t size_bytes = 0;
  std::string text;
  if (log == nullptr || api.module_build_log_get_string == nullptr ||
      api.module_build_log_destroy == nullptr) {
    return text;
  }
  if (api.module_build_log_get_string(log, &size_bytes, nullptr) == ZE_RESULT_SUCCESS &&
      size_bytes > 1) {
    text.resize(size_bytes);
    if (api.module_build_log_get_string(log, &size_bytes, text.data()) == ZE_RESULT_SUCCESS) {
      text.resize(std::min(text.find('\0'), text.size()));
    }
  }
  (void)api.module_build_log_destroy(log);
  return text;
}

}  // namespace

LevelZeroKernels::LevelZeroKernels(std::span<const std::unique_ptr<LevelZeroDevice>> devices)
    : devices_(devices),
      modules_(static_cast<int>(devices.size()), {ImageFormat::kSpirv}, Available(devices),
               {.load = [this](int device,
                               const DeviceImage& image) { return LoadModule(device, image); },
                .find = [this](int device, void* module,
                               const char* kernel) { return FindKernel(device, module, kernel); },
                .unload =
                    [this](int device, void* module) {
                      (void)devices_[static_cast<size_t>(device)]->context().api().module_destroy(
                          static_cast<ze_module_handle_t>(module));
                    }}) {}

Status LevelZeroKernels::Available(std::span<const std::unique_ptr<LevelZeroDevice>> devices) {
  const LevelZeroApi& api = devices.front()->context().api();
  const bool has_all = api.module_create != nullptr && api.module_destroy != nullptr &&
                       api.kernel_create != nullptr && api.kernel_destroy != nullptr &&
                       api.kernel_set_group_size != nullptr &&
                       api.kernel_set_argument_value != nullptr &&
                       api.command_list_append_launch_kernel != nullptr;
  return has_all ? Status()
                 : Status(ErrorCode::kUnsupported, "Level Zero: the loader has no modules");
}

Status LevelZeroKernels::Known(int device) {
  FERRY_RETURN_IF_ERROR(modules_.Known(device));
  return Usable(device);
}

Status LevelZeroKernels::Usable(int device) const {
  const LevelZeroDevice& target = *devices_[static_cast<size_t>(device)];
  if (!target.runs_kernels()) {
    return {ErrorCode::kUnsupported, "Level Zero: the device has no queue for kernels"};
  }
  // Pinned memory is the first driver's, and with it the words of streams.
  return &target.context() == &devices_.front()->context()
             ? Status()
             : Status(ErrorCode::kUnsupported,
                      "Level Zero: the device is of another driver than the first one");
}

StatusOr<void*> LevelZeroKernels::LoadModule(int device, const DeviceImage& image) const {
  const LevelZeroDevice& target = *devices_[static_cast<size_t>(device)];
  const LevelZeroApi& api = target.context().api();
  FERRY_RETURN_IF_ERROR(Usable(device));
  ze_module_desc_t description{};
  description.stype = ZE_STRUCTURE_TYPE_MODULE_DESC;
  description.format = ZE_MODULE_FORMAT_IL_SPIRV;
  description.inputSize = image.bytes.size();
  description.pInputModule = reinterpret_cast<const uint8_t*>(image.bytes.data());
  ze_module_handle_t module = nullptr;
  ze_module_build_log_handle_t log = nullptr;
  const Status status = ZeStatus(
      "zeModuleCreate",
      api.module_create(target.context().handle(), target.handle(), &description, &module, &log));
  const std::string text = TakeLog(api, log);
  if (!status.ok()) {
    return Status(status.code(), status.message() + (text.empty() ? "" : ": " + text));
  }
  return static_cast<void*>(module);
}

StatusOr<void*> LevelZeroKernels::FindKernel(int device, void* module, const char* kernel) const {
  const LevelZeroApi& api = devices_[static_cast<size_t>(device)]->context().api();
  ze_kernel_desc_t description{};
  description.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC;
  description.pKernelName = kernel;
  ze_kernel_handle_t handle = nullptr;
  FERRY_RETURN_IF_ERROR(
      ZeStatus("zeKernelCreate",
               api.kernel_create(static_cast<ze_module_handle_t>(module), &description, &handle)));
  return static_cast<void*>(handle);
}

StatusOr<LevelZeroKernels::Append> LevelZeroKernels::Prepare(
    int device, Kernel kernel, uint64_t threads, std::span<const KernelArgument> arguments) {
  const StatusOr<void*> found = modules_.Find(device, kernel);
  FERRY_RETURN_IF_ERROR(found.status());
  std::array<uint64_t, kMostKernelArguments> values{};
  std::transform(arguments.begin(), arguments.end(), values.begin(),
                 [](const KernelArgument& argument) { return argument.value; });
  const KernelModules::Shape shape = KernelModules::ShapeOf(threads);
  return Append([this, &api = devices_[static_cast<size_t>(device)]->context().api(),
                 handle = static_cast<ze_kernel_handle_t>(*found), count = arguments.size(), values,
                 shape](ze_command_list_handle_t list) -> Status {
    std::lock_guard lock(arguments_);
    FERRY_RETURN_IF_ERROR(ZeStatus("zeKernelSetGroupSize",
                                   api.kernel_set_group_size(handle, shape.group_threads, 1, 1)));
    for (uint32_t i = 0; i < count; ++i) {
      FERRY_RETURN_IF_ERROR(
          ZeStatus("zeKernelSetArgumentValue",
                   api.kernel_set_argument_value(handle, i, sizeof(values[i]), &values[i])));
    }
    const ze_group_count_t groups{shape.groups, 1, 1};
    return ZeStatus(
        "zeCommandListAppendLaunchKernel",
        api.command_list_append_launch_kernel(list, handle, &groups, nullptr, 0, nullptr));
  });
}

void LevelZeroKernels::Unload() {
  modules_.Unload([this](void* function) {
    (void)devices_.front()->context().api().kernel_destroy(
        static_cast<ze_kernel_handle_t>(function));
  });
}

}  // namespace ferry::gpu
