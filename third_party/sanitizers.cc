// Suppresses the sanitizers' reports about libraries that are not ours. Bazel links this into every
// program that is built with one (.bazelrc: build:san).

// gRPC's library, and the locks in it, are not instrumented, but its headers are compiled with us.
// So an object that one of gRPC's threads hands to another looks like a race in the header's code.
// These are the classes of the headers that do so. None of them stands above a handler of a service
// in a stack, so races in handlers are still found; for callbacks of asynchronous calls (the last
// line) they are not: those only post to the control thread.
#if defined(__SANITIZE_THREAD__)
extern "C" const char* __tsan_default_suppressions() {
  return "race:grpc::internal::InterceptorBatchMethodsImpl\n"
         "race:grpc::internal::CallOp\n"
         "race:grpc::internal::CallbackWithSuccessTag\n"
         "race:grpc::ServerUnaryReactor\n"
         "race:grpc::ServerCallbackUnary\n"
         "race:ServerCallbackUnaryImpl\n"
         "race:grpc::internal::ServerCallbackCall\n"
         "race:grpc::internal::Call::\n"
         "race:grpc::ByteBuffer\n"
         "race:grpc::internal::CallbackUnaryHandler*::Deserialize\n"
         "race:grpc::internal::CallbackWithStatusTag\n";
}
#endif

// gcc's name for it, or clang's.
#if defined(__SANITIZE_ADDRESS__)
#define FERRY_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FERRY_ADDRESS_SANITIZER
#endif
#endif

#if defined(FERRY_ADDRESS_SANITIZER)
#include <dlfcn.h>

// libpsm2 opens and closes libnuma where there is one, and what that has allocated would be of an
// "unknown module", which cannot be named below.
__attribute__((constructor)) static void KeepLibnuma() {
  dlopen("libnuma.so", RTLD_LAZY | RTLD_NODELETE);
  dlopen("libnuma.so.1", RTLD_LAZY | RTLD_NODELETE);
}

// libfabric 1.17 loses descriptions of endpoints (fi_dupinfo) when one is closed while it connects,
// and when a domain is closed.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): LeakSanitizer's name
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libfabric.so\n"
         "leak:libnuma.so\n"
         "leak:libcares.so\n"  // gRPC's name lookups, when a program ends during one
         // Its threads may hang in the kernel when a program ends (in closing a file whose server
         // is silent): LeakSanitizer cannot stop them, so it does not see what lies on their
         // stacks. Nor does it see what they hand over through a socket.
         "leak:ferry::daemon::Disposal::Bury\n"
         "leak:ferry::daemon::Disposal::Undertake\n";
}
#endif
