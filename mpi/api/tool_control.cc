// The tool information interface: enumerations and control variables (MPI 5.0, sections 15.3.5 and
// 15.3.6).
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "mpi/api/function.h"
#include "mpi/api/tool_call.h"
#include "mpi/init/process.h"
#include "mpi/mpi_t/control.h"
#include "mpi/mpi_t/event_types.h"

namespace ferry::mpi {
namespace {

constexpr char kVariables[] = "control variables";

struct ControlHandle {
  const ControlVariable* variable;
};

// Under the lock of a call.
std::vector<std::unique_ptr<ControlHandle>>& handles =
    *new std::vector<std::unique_ptr<ControlHandle>>();

const ControlVariable& VariableAt(int index) {
  return ControlVariables()[static_cast<size_t>(index)];
}

auto Locate(MPI_T_cvar_handle handle) {
  return std::find_if(handles.begin(), handles.end(), [handle](const auto& each) {
    return reinterpret_cast<MPI_T_cvar_handle>(each.get()) == handle;
  });
}

// Null: the call has failed.
const ControlHandle* Find(ToolCall& call, MPI_T_cvar_handle handle) {
  const auto found = Locate(handle);
  if (found == handles.end()) {
    call.Refuse(MPI_T_ERR_INVALID_HANDLE, "the handle is null, or was freed");
  }
  return call.ok() ? found->get() : nullptr;
}

}  // namespace

void FreeControlHandles() { handles.clear(); }

// ---- Enumerations -------------------------------------------------------------------------------

namespace {

// The choices of a control variable, or names of numbers in events.
Enumeration Find(ToolCall& call, MPI_T_enum enumtype) {
  if (const ControlVariable* const variable = FindEnumeration(enumtype); variable != nullptr) {
    Enumeration choices{variable->option->name, {}};
    for (const std::string& choice : variable->choices) {
      choices.items.push_back({static_cast<int>(choices.items.size()), choice});
    }
    return choices;
  }
  if (const Enumeration* const found = FindEventEnumeration(enumtype); found != nullptr) {
    return *found;
  }
  call.Refuse(MPI_T_ERR_INVALID, "enumtype is no enumeration");
  return {};
}

}  // namespace

FERRY_MPI_CALL(int, MPI_T_enum_get_info,
               (MPI_T_enum enumtype, int* num, char* name, int* name_len)) {
  ToolCall call(FERRY_MPI_NAME);
  const Enumeration found = Find(call, enumtype);
  return call.Then([&] {
    PutResult(num, static_cast<int>(found.items.size()));
    PutText(found.name, name, name_len);
  });
}

FERRY_MPI_CALL(int, MPI_T_enum_get_item,
               (MPI_T_enum enumtype, int indx, int* value, char* name, int* name_len)) {
  ToolCall call(FERRY_MPI_NAME);
  const Enumeration found = Find(call, enumtype);
  if (call.ok()) {
    call.NeedIndex(indx, found.items.size(), "items of the enumeration");
  }
  return call.Then([&] {
    const Enumeration::Item& item = found.items[static_cast<size_t>(indx)];
    PutResult(value, item.value);
    PutText(item.name, name, name_len);
  });
}

// ---- Control variables --------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_T_cvar_get_num, (int* num_cvar)) {
  ToolCall call(FERRY_MPI_NAME);
  call.Need(num_cvar, "num_cvar");
  return call.Then([&] { *num_cvar = static_cast<int>(ControlVariables().size()); });
}

FERRY_MPI_CALL(int, MPI_T_cvar_get_info,
               (int cvar_index, char* name, int* name_len, int* verbosity, MPI_Datatype* datatype,
                MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind, int* scope)) {
  ToolCall call(FERRY_MPI_NAME);
  call.NeedIndex(cvar_index, ControlVariables().size(), kVariables);
  return call.Then([&] {
    const ControlVariable& variable = VariableAt(cvar_index);
    PutText(variable.option->name, name, name_len);
    PutText(variable.description(), desc, desc_len);
    PutResult(verbosity, variable.verbosity());
    PutResult(datatype, variable.datatype());
    PutResult(enumtype, variable.enumeration());
    PutResult(bind, static_cast<int>(MPI_T_BIND_NO_OBJECT));
    PutResult(scope, variable.scope());
  });
}

FERRY_MPI_CALL(int, MPI_T_cvar_get_index, (const char* name, int* cvar_index)) {
  ToolCall call(FERRY_MPI_NAME);
  call.Need(name, "name");
  call.Need(cvar_index, "cvar_index");
  return call.Then([&]() -> Failure {
    const auto& all = ControlVariables();
    const auto found = std::find_if(all.begin(), all.end(), [name](const ControlVariable& each) {
      return std::string_view(each.option->name) == name;
    });
    if (found == all.end()) {
      return {MPI_T_ERR_INVALID_NAME, "there is no control variable \"" + std::string(name) + "\""};
    }
    *cvar_index = static_cast<int>(found - all.begin());
    return {};
  });
}

// The variables belong to no object, so `obj_handle` means nothing.
FERRY_MPI_CALL(int, MPI_T_cvar_handle_alloc,
               (int cvar_index, void*, MPI_T_cvar_handle* handle, int* count)) {
  ToolCall call(FERRY_MPI_NAME);
  call.NeedIndex(cvar_index, ControlVariables().size(), kVariables);
  call.Need(handle, "handle");
  call.Need(count, "count");
  return call.Then([&] {
    const ControlVariable& variable = VariableAt(cvar_index);
    handles.push_back(std::make_unique<ControlHandle>(ControlHandle{&variable}));
    *handle = reinterpret_cast<MPI_T_cvar_handle>(handles.back().get());
    *count = variable.count();
  });
}

FERRY_MPI_CALL(int, MPI_T_cvar_handle_free, (MPI_T_cvar_handle * handle)) {
  ToolCall call(FERRY_MPI_NAME);
  call.Need(handle, "handle");
  if (call.ok() && Find(call, *handle) != nullptr) {
    handles.erase(Locate(*handle));
    *handle = MPI_T_CVAR_HANDLE_NULL;
  }
  return call.result();
}

FERRY_MPI_CALL(int, MPI_T_cvar_read, (MPI_T_cvar_handle handle, void* buf)) {
  ToolCall call(FERRY_MPI_NAME);
  const ControlHandle* const found = Find(call, handle);
  call.Need(buf, "buf");
  return call.Then([&] { return ReadControl(*found->variable, buf); });
}

FERRY_MPI_CALL(int, MPI_T_cvar_write, (MPI_T_cvar_handle handle, const void* buf)) {
  ToolCall call(FERRY_MPI_NAME);
  const ControlHandle* const found = Find(call, handle);
  call.Need(buf, "buf");
  return call.Then([&] {
    return WriteControl(*found->variable, buf,
                        Process::HasJoined() || Process::phase() != Phase::kBefore);
  });
}

}  // namespace ferry::mpi
