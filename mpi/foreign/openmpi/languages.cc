// Names that Open MPI's bindings for C++ call in libmpi.so.40 beside MPI itself: those that its
// headers have inline in programs, and those of Ferry's libmpi_cxx.so.40 (bindings.cc).
//
// Any thread; nothing here waits.
#include <atomic>

#include "mpi/foreign/callbacks.h"
#include "mpi/foreign/convert.h"

namespace ferry::foreign {

extern "C" int foreign_Op_create(void (*)(void*, void*, int*, TheirHandle*), int,
                                 TheirHandle*) asm("PMPI_Op_create");
extern "C" int foreign_Op_free(TheirHandle*) asm("PMPI_Op_free");

namespace {

// ompi_mpi_cxx_op_intercept of the program's libmpi_cxx.so.40.
using Intercept = void(void* in, void* inout, int* length, TheirHandle* datatype,
                       void (*function)());
std::atomic<Intercept*> intercept{nullptr};

void CallCxx(void* in, void* inout, int length, TheirHandle datatype, void (*function)()) {
  intercept.load(std::memory_order_relaxed)(in, inout, &length, &datatype, function);
}

}  // namespace

// MPI::Op::Init is inline: it creates an operation of the function ompi_mpi_cxx_op_intercept, then
// says here which one of C++ is meant. As Ferry tells operations by their functions
// (callbacks.cc), this makes another operation in the same place, of the program's function.
extern "C" FERRY_SHOWN void ompi_op_set_cxx_callback(TheirHandle op, void (*function)()) {
  const LastMade first = LastOfThisThread();
  if (first.operation == nullptr || first.operation_handle != op) {
    return;
  }
  intercept.store(reinterpret_cast<Intercept*>(first.operation_function),
                  std::memory_order_relaxed);
  TheirHandle made = op;
  if (foreign_Op_create(reinterpret_cast<void (*)(void*, void*, int*, TheirHandle*)>(function),
                        first.operation_commutes, &made) != MPI_SUCCESS) {
    return;
  }
  LastOfThisThread().operation->store(reinterpret_cast<void (*)()>(CallCxx),
                                      std::memory_order_relaxed);
  TheirHandle freed = op;
  foreign_Op_free(&freed);
  *first.operation_place = made;
}

extern "C" FERRY_SHOWN void ferry_openmpi_set_handler_caller(TheirHandle errhandler,
                                                             HandlerCaller* call) {
  const LastMade& last = LastOfThisThread();
  if (last.handler != nullptr && last.handler_handle == errhandler) {
    last.handler->store(reinterpret_cast<void (*)()>(call), std::memory_order_relaxed);
  }
}

}  // namespace ferry::foreign
