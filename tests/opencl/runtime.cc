#include "tests/opencl/runtime.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#if __has_include(<CL/cl.h>)
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

namespace ferry::opencl {
namespace {

// The loader's functions: it may be missing where the tests run.
struct Api {
#define FERRY_OPENCL_FUNCTIONS(F)       \
  F(clGetPlatformIDs)                   \
  F(clGetDeviceIDs)                     \
  F(clGetDeviceInfo)                    \
  F(clCreateContext)                    \
  F(clReleaseContext)                   \
  F(clCreateCommandQueueWithProperties) \
  F(clReleaseCommandQueue)              \
  F(clCreateProgramWithSource)          \
  F(clBuildProgram)                     \
  F(clGetProgramBuildInfo)              \
  F(clReleaseProgram)                   \
  F(clCreateKernel)                     \
  F(clReleaseKernel)                    \
  F(clSetKernelArg) F(clSetKernelArgSVMPointer) F(clEnqueueNDRangeKernel) F(clFinish)
#define FERRY_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
  FERRY_OPENCL_FUNCTIONS(FERRY_OPENCL_MEMBER)
#undef FERRY_OPENCL_MEMBER
  std::string missing;
};

Api LoadApi() {
  Api api;
  void* const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    api.missing = dlerror();
    return api;
  }
#define FERRY_OPENCL_FIND(name)                                          \
  api.name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name)); \
  if (api.name == nullptr) {                                             \
    api.missing = "libOpenCL.so.1 has no " #name;                        \
  }
  FERRY_OPENCL_FUNCTIONS(FERRY_OPENCL_FIND)
#undef FERRY_OPENCL_FIND
  return api;
}

const Api& TheApi() {
  static const Api api = LoadApi();
  return api;
}

struct Found {
  cl_device_id device = nullptr;
  std::string why_not;
};

// The first CPU whose memory is the host's.
Found FindDevice() {
  const Api& api = TheApi();
  if (!api.missing.empty()) {
    return {nullptr, api.missing};
  }
  cl_platform_id platforms[16];
  cl_uint count = 0;
  if (api.clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS) {
    return {nullptr, "libOpenCL.so.1 knows no platform"};
  }
  for (cl_uint i = 0; i < count && i < 16; ++i) {
    cl_device_id device = nullptr;
    cl_device_svm_capabilities svm = 0;
    if (api.clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, nullptr) == CL_SUCCESS &&
        api.clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm, nullptr) ==
            CL_SUCCESS &&
        (svm & CL_DEVICE_SVM_ATOMICS) != 0) {
      return {device, ""};
    }
  }
  return {nullptr, "no platform of OpenCL has a CPU that shares memory and has atomics on it"};
}

void Check(const char* call, cl_int error) {
  if (error != CL_SUCCESS) {
    std::fprintf(stderr, "%s: error %d of OpenCL\n", call, error);
    std::exit(1);
  }
}

std::string TextOf(cl_device_id device, cl_device_info what) {
  char text[4096] = {};
  Check("clGetDeviceInfo", TheApi().clGetDeviceInfo(device, what, sizeof(text) - 1, text, nullptr));
  return text;
}

// The function of OpenCL C 2.0 that groups.h needs, an option of 3.0 that the run time lacks: a
// word of each group that runs, in memory of the kernel's library. For one launch at a time.
constexpr char kBroadcast[] = R"(
#if __OPENCL_C_VERSION__ >= 300 && !defined(__opencl_c_work_group_collective_functions)
static inline ulong work_group_broadcast(ulong value, size_t from) {
  ulong words;
#if defined(__aarch64__)
  __asm__ volatile(".local ferry_words\n.comm ferry_words,65536,64\nadrp %0, ferry_words\nadd %0, %0, :lo12:ferry_words" : "=r"(words));
#else
  __asm__ volatile(".local ferry_words\n.comm ferry_words,65536,64\nleaq ferry_words(%%rip),%0" : "=r"(words));
#endif
  volatile __global ulong* const word = (volatile __global ulong*)words + get_group_id(0) % 8192;
  if (get_local_id(0) == from) {
    *word = value;
  }
  work_group_barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
  return *word;
}
#endif
)";

}  // namespace

std::string WhyNone() { return FindDevice().why_not; }

struct Program::State {
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;
};

Program::Program(const std::string& source) : state_(std::make_unique<State>()) {
  const Api& api = TheApi();
  const Found found = FindDevice();
  if (found.device == nullptr) {
    std::fprintf(stderr, "%s\n", found.why_not.c_str());
    std::exit(1);
  }
  state_->device = found.device;
  cl_int error = CL_SUCCESS;
  state_->context = api.clCreateContext(nullptr, 1, &state_->device, nullptr, nullptr, &error);
  Check("clCreateContext", error);
  state_->queue =
      api.clCreateCommandQueueWithProperties(state_->context, state_->device, nullptr, &error);
  Check("clCreateCommandQueueWithProperties", error);
  const std::string whole = kBroadcast + source;
  const char* text = whole.c_str();
  state_->program = api.clCreateProgramWithSource(state_->context, 1, &text, nullptr, &error);
  Check("clCreateProgramWithSource", error);
  // By their number devices of 3.0 say nothing about options of 2.0.
  const bool is_3 = TextOf(state_->device, CL_DEVICE_VERSION).rfind("OpenCL 3", 0) == 0;
  const std::string flags =
      std::string(is_3 ? "-cl-std=CL3.0" : "-cl-std=CL2.0") + " -I. -Iinclude";
  error = api.clBuildProgram(state_->program, 1, &state_->device, flags.c_str(), nullptr, nullptr);
  if (error != CL_SUCCESS) {
    std::vector<char> log(1 << 16);
    (void)api.clGetProgramBuildInfo(state_->program, state_->device, CL_PROGRAM_BUILD_LOG,
                                    log.size() - 1, log.data(), nullptr);
    std::fprintf(stderr, "%s\n", log.data());
    Check("clBuildProgram", error);
  }
}

Program::~Program() {
  (void)TheApi().clReleaseProgram(state_->program);
  (void)TheApi().clReleaseCommandQueue(state_->queue);
  (void)TheApi().clReleaseContext(state_->context);
}

void Program::Launch(const char* kernel, size_t groups, size_t group_size,
                     const std::vector<Argument>& arguments) {
  const Api& api = TheApi();
  cl_int error = CL_SUCCESS;
  cl_kernel made = api.clCreateKernel(state_->program, kernel, &error);
  Check(kernel, error);
  for (cl_uint i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    Check(kernel, argument.bytes.empty()
                      ? api.clSetKernelArgSVMPointer(made, i, argument.address)
                      : api.clSetKernelArg(made, i, argument.bytes.size(), argument.bytes.data()));
  }
  const size_t all = groups * group_size;
  Check(kernel, api.clEnqueueNDRangeKernel(state_->queue, made, 1, nullptr, &all, &group_size, 0,
                                           nullptr, nullptr));
  Check(kernel, api.clFinish(state_->queue));
  Check(kernel, api.clReleaseKernel(made));
}

size_t Program::ComputeUnits() const {
  cl_uint units = 0;
  Check("clGetDeviceInfo", TheApi().clGetDeviceInfo(state_->device, CL_DEVICE_MAX_COMPUTE_UNITS,
                                                    sizeof(units), &units, nullptr));
  return units;
}

}  // namespace ferry::opencl

#else

namespace ferry::opencl {

std::string WhyNone() { return "there is no CL/cl.h: apt-get install opencl-c-headers"; }

struct Program::State {};
Program::Program(const std::string& /*source*/) { std::exit(1); }
Program::~Program() = default;
void Program::Launch(const char* /*kernel*/, size_t /*groups*/, size_t /*group_size*/,
                     const std::vector<Argument>& /*arguments*/) {}
size_t Program::ComputeUnits() const { return 0; }

}  // namespace ferry::opencl

#endif
