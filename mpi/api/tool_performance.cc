// The tool information interface: performance variables (MPI 5.0, section 15.3.7).
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/api/function.h"
#include "mpi/api/tool_call.h"
#include "mpi/mpi_t/performance.h"

namespace ferry::mpi {
namespace {

constexpr char kVariables[] = "performance variables";

// Under the lock of a call.
std::vector<std::unique_ptr<PerformanceSession>>& open_sessions =
    *new std::vector<std::unique_ptr<PerformanceSession>>();

template <typename Handle, typename T>
auto Locate(std::vector<std::unique_ptr<T>>& all, Handle handle) {
  return std::find_if(all.begin(), all.end(), [handle](const auto& each) {
    return reinterpret_cast<Handle>(each.get()) == handle;
  });
}

// Null: the call has failed.
PerformanceSession* Find(ToolCall& call, MPI_T_pvar_session session) {
  const auto found = Locate(open_sessions, session);
  if (found == open_sessions.end()) {
    call.Refuse(MPI_T_ERR_INVALID_SESSION, "the session is null, or was freed");
  }
  return call.ok() ? found->get() : nullptr;
}

PerformanceHandle* Find(ToolCall& call, PerformanceSession* session, MPI_T_pvar_handle handle) {
  if (!call.ok()) {
    return nullptr;
  }
  const auto found = Locate(*session, handle);
  if (found == session->end()) {
    call.Refuse(MPI_T_ERR_INVALID_HANDLE,
                handle == MPI_T_PVAR_ALL_HANDLES
                    ? "MPI_T_PVAR_ALL_HANDLES can be started, stopped and reset only"
                    : "the handle is null, was freed, or belongs to another session");
  }
  return call.ok() ? found->get() : nullptr;
}

}  // namespace

void FreePerformanceSessions() { open_sessions.clear(); }

// ---- The variables ------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_T_pvar_get_num, (int* num_pvar)) {
  ToolCall call(FERRY_MPI_NAME);
  call.Need(num_pvar, "num_pvar");
  return call.Then([&] { *num_pvar = static_cast<int>(PerformanceVariables().size()); });
}

FERRY_MPI_CALL(int, MPI_T_pvar_get_info,
               (int pvar_index, char* name, int* name_len, int* verbosity, int* var_class,
                MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind,
                int* readonly, int* continuous, int* atomic)) {
  ToolCall call(FERRY_MPI_NAME);
  call.NeedIndex(pvar_index, PerformanceVariables().size(), kVariables);
  return call.Then([&] {
    const PerformanceVariable& variable = PerformanceVariables()[static_cast<size_t>(pvar_index)];
    PutText(variable.name, name, name_len);
    PutText(std::string(variable.help) + " (" + variable.unit + ").", desc, desc_len);
    PutResult(verbosity, static_cast<int>(MPI_T_VERBOSITY_USER_DETAIL));
    PutResult(var_class, variable.var_class);
    PutResult(datatype, variable.datatype());
    PutResult(enumtype, variable.enumeration());
    PutResult(bind, static_cast<int>(MPI_T_BIND_NO_OBJECT));
    PutResult(readonly, variable.is_now() ? 1 : 0);
    PutResult(continuous, variable.is_now() ? 1 : 0);
    PutResult(atomic, variable.is_now() ? 0 : 1);
  });
}

FERRY_MPI_CALL(int, MPI_T_pvar_get_index, (const char* name, int var_class, int* pvar_index)) {
  ToolCall call(FERRY_MPI_NAME);
  call.Need(name, "name");
  call.Need(pvar_index, "pvar_index");
  return call.Then([&]() -> Failure {
    const auto& all = PerformanceVariables();
    const auto found = std::find_if(all.begin(), all.end(), [&](const PerformanceVariable& each) {
      return std::string_view(each.name) == name && each.var_class == var_class;
    });
    if (found == all.end()) {
      return {MPI_T_ERR_INVALID_NAME,
              "there is no performance variable \"" + std::string(name) + "\" of this class"};
    }
    *pvar_index = static_cast<int>(found - all.begin());
    return {};
  });
}

// ---- Sessions and handles -----------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_T_pvar_session_create, (MPI_T_pvar_session * session)) {
  ToolCall call(FERRY_MPI_NAME);
  call.Need(session, "session");
  return call.Then([&] {
    open_sessions.push_back(std::make_unique<PerformanceSession>());
    *session = reinterpret_cast<MPI_T_pvar_session>(open_sessions.back().get());
  });
}

FERRY_MPI_CALL(int, MPI_T_pvar_session_free, (MPI_T_pvar_session * session)) {
  ToolCall call(FERRY_MPI_NAME);
  call.Need(session, "session");
  if (call.ok() && Find(call, *session) != nullptr) {
    open_sessions.erase(Locate(open_sessions, *session));
    *session = MPI_T_PVAR_SESSION_NULL;
  }
  return call.result();
}

// The variables belong to no object, so `obj_handle` means nothing.
FERRY_MPI_CALL(int, MPI_T_pvar_handle_alloc,
               (MPI_T_pvar_session session, int pvar_index, void*, MPI_T_pvar_handle* handle,
                int* count)) {
  ToolCall call(FERRY_MPI_NAME);
  PerformanceSession* const found = Find(call, session);
  call.NeedIndex(pvar_index, PerformanceVariables().size(), kVariables);
  call.Need(handle, "handle");
  call.Need(count, "count");
  return call.Then([&] {
    found->push_back(std::make_unique<PerformanceHandle>(pvar_index));
    *handle = reinterpret_cast<MPI_T_pvar_handle>(found->back().get());
    *count = 1;
  });
}

FERRY_MPI_CALL(int, MPI_T_pvar_handle_free,
               (MPI_T_pvar_session session, MPI_T_pvar_handle* handle)) {
  ToolCall call(FERRY_MPI_NAME);
  PerformanceSession* const found = Find(call, session);
  call.Need(handle, "handle");
  if (call.ok() && Find(call, found, *handle) != nullptr) {
    found->erase(Locate(*found, *handle));
    *handle = MPI_T_PVAR_HANDLE_NULL;
  }
  return call.result();
}

// ---- Counting -----------------------------------------------------------------------------------

namespace {

// All handles: those to which it cannot be done are passed over.
template <typename Use>
int ForOneOrAll(const char* name, MPI_T_pvar_session session, MPI_T_pvar_handle handle, Use&& use) {
  ToolCall call(name);
  PerformanceSession* const found = Find(call, session);
  if (call.ok() && handle == MPI_T_PVAR_ALL_HANDLES) {
    for (const auto& each : *found) {
      (void)use(*each);
    }
    return call.result();
  }
  PerformanceHandle* const one = Find(call, found, handle);
  return call.Then([&] { return use(*one); });
}

}  // namespace

FERRY_MPI_CALL(int, MPI_T_pvar_start, (MPI_T_pvar_session session, MPI_T_pvar_handle handle)) {
  return ForOneOrAll(FERRY_MPI_NAME, session, handle,
                     [](PerformanceHandle& each) { return each.Start(); });
}

FERRY_MPI_CALL(int, MPI_T_pvar_stop, (MPI_T_pvar_session session, MPI_T_pvar_handle handle)) {
  return ForOneOrAll(FERRY_MPI_NAME, session, handle,
                     [](PerformanceHandle& each) { return each.Stop(); });
}

FERRY_MPI_CALL(int, MPI_T_pvar_reset, (MPI_T_pvar_session session, MPI_T_pvar_handle handle)) {
  return ForOneOrAll(FERRY_MPI_NAME, session, handle,
                     [](PerformanceHandle& each) { return each.Reset(); });
}

FERRY_MPI_CALL(int, MPI_T_pvar_read,
               (MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf)) {
  ToolCall call(FERRY_MPI_NAME);
  PerformanceHandle* const found = Find(call, Find(call, session), handle);
  call.Need(buf, "buf");
  return call.Then([&] { found->Read(buf); });
}

FERRY_MPI_CALL(int, MPI_T_pvar_write,
               (MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void* buf)) {
  ToolCall call(FERRY_MPI_NAME);
  PerformanceHandle* const found = Find(call, Find(call, session), handle);
  call.Need(buf, "buf");
  return call.Then([&] { return found->Write(buf); });
}

FERRY_MPI_CALL(int, MPI_T_pvar_readreset,
               (MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf)) {
  ToolCall call(FERRY_MPI_NAME);
  PerformanceHandle* const found = Find(call, Find(call, session), handle);
  call.Need(buf, "buf");
  if (call.ok() && found->variable().is_now()) {
    call.Refuse(MPI_T_ERR_PVAR_NO_ATOMIC, "the variable can only be read");
  }
  return call.Then([&] {
    found->Read(buf);
    return found->Reset();
  });
}

}  // namespace ferry::mpi
