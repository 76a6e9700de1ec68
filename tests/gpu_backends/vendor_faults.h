// Faults that every vendor's backend must survive: errors from any call, devices that go away,
// processes that are gone. A backend's test links //tests/gpu_backends:vendor_faults and defines
// VendorsUnderTest(); its own tests stand beside these.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "gpu_backends/api/backend.h"

namespace ferry::gpu {

// A backend over a stand-in, and the vendor's names for its calls. Errors are the vendor's.
struct VendorUnderTest {
  std::string name;
  std::string library;  // the stand-in
  std::function<StatusOr<std::unique_ptr<GpuBackend>>(const std::string& library)> create;
  std::string exporter;  // the backend's name in tests/gpu_backends/ipc_exporter.cc

  std::vector<std::string>
      calls;       // calls that UseEverything makes, and whose errors it must report
  int some_error;  // which any call may return
  std::string some_error_name;
  std::string allocate_device;
  std::string allocate_pinned;
  int out_of_memory;
  std::string copy;
  std::string launch;  // launches the kernels that write and await words; empty if there are none
  std::string_view missing;  // what the build lacked to make those kernels, if it did
  std::string open_import;
  std::string close_import;
  std::string device_info;    // called by GetDeviceInfo
  std::string export_dmabuf;  // empty: there is none
  int device_lost;
  std::string device_lost_name;
};

// For gtest.
inline std::ostream& operator<<(std::ostream& stream, const VendorUnderTest& vendor) {
  return stream << vendor.name;
}

std::vector<VendorUnderTest> VendorsUnderTest();

}  // namespace ferry::gpu
