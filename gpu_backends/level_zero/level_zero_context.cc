#include "gpu_backends/level_zero/level_zero_context.h"

#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

namespace ferry::gpu {
namespace {

// The driver's own handle of an object. Where the loader has several drivers, it wraps their
// handles in its own.
template <typename Handle>
StatusOr<Handle> DriversOwn(const LevelZeroApi& api, zel_handle_type_t type, Handle handle) {
  if (api.loader_translate_handle == nullptr) {
    return handle;
  }
  void* own = nullptr;
  FERRY_RETURN_IF_ERROR(
      ZeStatus("zelLoaderTranslateHandle", api.loader_translate_handle(type, handle, &own)));
  return static_cast<Handle>(own);
}

}  // namespace

StatusOr<std::unique_ptr<LevelZeroContext>> LevelZeroContext::Open(const LevelZeroApi* api,
                                                                   ze_driver_handle_t driver) {
  std::unique_ptr<LevelZeroContext> context(new LevelZeroContext(api, driver));
  FERRY_RETURN_IF_ERROR(context->ReadVersion());
  FERRY_RETURN_IF_ERROR(context->ReadProperties());
  context->FindExtensions();
  ze_context_desc_t description{};
  description.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC;
  FERRY_RETURN_IF_ERROR(
      ZeStatus("zeContextCreate", api->context_create(driver, &description, &context->handle_)));
  context->events_ = std::make_unique<LevelZeroEvents>(api, context->handle_);
  return context;
}

LevelZeroContext::~LevelZeroContext() {
  events_.reset();
  if (handle_ != nullptr && !abandoned_) {
    api_->context_destroy(handle_);
  }
}

Status LevelZeroContext::ReadVersion() {
  ze_api_version_t version{};
  FERRY_RETURN_IF_ERROR(
      ZeStatus("zeDriverGetApiVersion", api_->driver_get_api_version(driver_, &version)));
  const std::string text =
      std::to_string(ZE_MAJOR_VERSION(version)) + "." + std::to_string(ZE_MINOR_VERSION(version));
  if (ZE_MAJOR_VERSION(version) != 1) {
    return {ErrorCode::kUnsupported, "Level Zero: the driver implements version " + text +
                                         ", Ferry needs 1.0 or a later 1.x"};
  }
  ze_driver_properties_t properties{};
  properties.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES;
  FERRY_RETURN_IF_ERROR(
      ZeStatus("zeDriverGetProperties", api_->driver_get_properties(driver_, &properties)));
  char driver_version[16];
  std::snprintf(driver_version, sizeof(driver_version), "0x%08x", properties.driverVersion);
  version_ = "Level Zero " + text + ", driver " + driver_version;
  return {};
}

Status LevelZeroContext::ReadProperties() {
  ze_driver_ipc_properties_t ipc{};
  ipc.stype = ZE_STRUCTURE_TYPE_DRIVER_IPC_PROPERTIES;
  FERRY_RETURN_IF_ERROR(
      ZeStatus("zeDriverGetIpcProperties", api_->driver_get_ipc_properties(driver_, &ipc)));
  has_ipc_ = (ipc.flags & ZE_IPC_PROPERTY_FLAG_MEMORY) != 0;

  uint32_t count = 0;
  FERRY_RETURN_IF_ERROR(ZeStatus("zeDriverGetExtensionProperties",
                                 api_->driver_get_extension_properties(driver_, &count, nullptr)));
  std::vector<ze_driver_extension_properties_t> extensions(count);
  if (count > 0) {
    FERRY_RETURN_IF_ERROR(
        ZeStatus("zeDriverGetExtensionProperties",
                 api_->driver_get_extension_properties(driver_, &count, extensions.data())));
  }
  for (const ze_driver_extension_properties_t& extension : extensions) {
    if (std::strncmp(extension.name, ZE_RELAXED_ALLOCATION_LIMITS_EXP_NAME,
                     sizeof(extension.name)) == 0) {
      has_relaxed_limits_ = true;
    }
  }
  return {};
}

void LevelZeroContext::FindExtensions() {
  StatusOr<ze_driver_handle_t> own = DriversOwn(*api_, ZEL_HANDLE_DRIVER, driver_);
  if (!own.ok()) {
    return;
  }
  own_driver_ = *own;
  FindExtension("zexCommandListAppendWaitOnMemory64", &wait_on_memory_);
  FindExtension("zexCommandListAppendWriteToMemory", &write_to_memory_);
  FindExtension("zexDriverImportExternalPointer", &import_pointer_);
  FindExtension("zexDriverReleaseImportedPointer", &release_pointer_);
}

template <typename Function>
void LevelZeroContext::FindExtension(const char* name, Function* function) {
  void* address = nullptr;
  if (api_->driver_get_extension_function_address != nullptr &&
      api_->driver_get_extension_function_address(driver_, name, &address) == ZE_RESULT_SUCCESS) {
    *function = reinterpret_cast<Function>(address);
  }
}

Status LevelZeroContext::AppendWrite(ze_command_list_handle_t list, uint64_t* word,
                                     uint64_t value) {
  StatusOr<ze_command_list_handle_t> own = DriversOwn(*api_, ZEL_HANDLE_COMMAND_LIST, list);
  FERRY_RETURN_IF_ERROR(own.status());
  ZexWriteDescriptor descriptor{kZexScopeHost};
  return ZeStatus("zexCommandListAppendWriteToMemory",
                  write_to_memory_(*own, &descriptor, word, value));
}

Status LevelZeroContext::AppendWait(ze_command_list_handle_t list, const uint64_t* word,
                                    uint64_t value, WaitCondition condition) {
  StatusOr<ze_command_list_handle_t> own = DriversOwn(*api_, ZEL_HANDLE_COMMAND_LIST, list);
  FERRY_RETURN_IF_ERROR(own.status());
  ZexWaitDescriptor descriptor{
      condition == WaitCondition::kEqual ? kZexWaitEqual : kZexWaitGreaterOrEqual, kZexScopeHost};
  return ZeStatus("zexCommandListAppendWaitOnMemory64",
                  wait_on_memory_(*own, &descriptor, const_cast<uint64_t*>(word), value, nullptr));
}

Status LevelZeroContext::ImportHostMemory(void* pointer, uint64_t size_bytes) {
  if (!has_imports()) {
    return {};
  }
  return ZeStatus("zexDriverImportExternalPointer",
                  import_pointer_(own_driver_, pointer, size_bytes));
}

Status LevelZeroContext::ReleaseHostMemory(void* pointer) {
  if (!has_imports()) {
    return {};
  }
  return ZeStatus("zexDriverReleaseImportedPointer", release_pointer_(own_driver_, pointer));
}

void LevelZeroContext::Abandon() {
  abandoned_ = true;
  events_->Abandon();
}

}  // namespace ferry::gpu
