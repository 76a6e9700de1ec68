"""Writes the C++ definitions: each function a call of shmem/base/operations.h, by its family.

In a body, {call} is the function's name for messages, {ctx} its context, {T} its element type,
{size} what an element takes and {bytes} what `nelems` of them take.
"""

import table
import text
from families import DEPRECATED, FAMILIES
from parts import PARTS, QUEUES_PART


def _moves():
    """Puts, gets and signals."""
    bodies = {
        "p": "StoreTo({call}, {ctx}, dest, value, pe);",
        "g": "return LoadFrom({call}, {ctx}, source, pe);",
        "signal_fetch": "return SignalFetch({call}, sig_addr);",
        "signal_set": "SignalSet({call}, {ctx}, sig_addr, signal, pe);",
        "signal_add": "SignalAdd({call}, {ctx}, sig_addr, signal, pe);",
        "signal_wait_until": "return SignalWaitUntil({call}, sig_addr, cmp, cmp_value);",
    }
    for suffix, completion in (("", "kBlocking"), ("_nbi", "kNonblocking")):
        for verb in ("put", "get"):
            bodies[verb + suffix] = (
                f"{verb.title()}({{call}}, {{ctx}}, dest, source, {{bytes}}, pe, "
                f"Completion::{completion});")
        bodies["put_signal" + suffix] = (
            "PutSignal({call}, {ctx}, dest, source, {bytes}, sig_addr, signal, sig_op, pe, "
            f"Completion::{completion});")
    for verb in ("put", "get"):
        for prefix, block in (("i", "1, nelems"), ("ib", "bsize, nblocks")):
            bodies[prefix + verb] = (
                f"{verb.title()}Strided({{call}}, {{ctx}}, dest, source, "
                f"Strides(dst, sst, {block}, {{size}}), pe);")
    return bodies


def _atomics():
    forms = {  # name: operation, where, value, condition
        "fetch": ("kFetch", "source", "0", "0"),
        "set": ("kSet", "dest", "value", "0"),
        "swap": ("kSwap", "dest", "value", "0"),
        "compare_swap": ("kCompareSwap", "dest", "value", "cond"),
    }
    for name in ("and", "or", "xor", "add"):
        forms[name] = forms["fetch_" + name] = ("k" + name.title(), "dest", "value", "0")
    forms["inc"] = forms["fetch_inc"] = ("kAdd", "dest", "1", "0")
    old = {"fetch": "fetch", "set": "set", "swap": "swap", "cswap": "compare_swap",
           "finc": "fetch_inc", "inc": "inc", "fadd": "fetch_add", "add": "add"}
    fetching = {name for name in forms if name.startswith("fetch")} | {"swap", "compare_swap"}

    def call(name, function, result=""):
        operation, where, value, condition = forms[name]
        return (f"{function}({{call}}, {{ctx}}, Atomic::{operation}, {where}, {value}, {condition}, "
                f"pe{result});")

    bodies = {}
    for name in forms:
        if name in fetching:
            bodies["atomic_" + name] = "return " + call(name, "FetchBy")
            bodies[f"atomic_{name}_nbi"] = call(name, "BeginBy", ", fetch")
        else:
            bodies["atomic_" + name] = call(name, "BeginBy")
    for name, new in old.items():
        bodies["old " + name] = bodies["atomic_" + new]
    return bodies


def _waits():
    one = "Watch(ivar, 1, nullptr, nullptr, cmp, &cmp_value, false)"
    many = "Watch(ivars, nelems, status, {indices}, cmp, {values})"
    bodies = {}
    for stem, action in (("wait_until", "WaitUntil"), ("test", "Test")):
        all_result = "" if stem == "wait_until" else "return "
        bodies[stem] = f"{all_result}{action}({{call}}, WaitFor::kAll, {one});"
        for form in ("all", "any", "some"):
            for suffix, values in (("", "&cmp_value, false"), ("_vector", "cmp_values, true")):
                indices = "indices" if form == "some" else "nullptr"
                watch = many.format(indices=indices, values=values)
                result = all_result if form == "all" else "return "
                bodies[f"{stem}_{form}{suffix}"] = (
                    f"{result}{action}({{call}}, WaitFor::k{form.title()}, {watch});")
    changed = bodies["wait_until"].replace("cmp, &", "SHMEM_CMP_NE, &")
    bodies["old wait"] = bodies["old shmem_wait"] = changed
    bodies["old shmem_wait_until"] = bodies["wait_until"]
    return bodies


def _collectives():
    old_set = "ActiveSet(PE_start, logPE_stride, PE_size)"
    scan = "return Scan({call}, TeamGroup(team), dest, source, nelems, ReduceTypeOf<{T}>(), "
    bodies = {
        "barrier_all": "Barrier({call}, WorldGroup());",
        "sync_all": "Sync({call}, WorldGroup());",
        "team_sync": "return Sync({call}, TeamGroup(team));",
        "old barrier": f"Barrier({{call}}, {old_set});",
        "old sync": f"Sync({{call}}, {old_set});",
        "sum_inscan": scan + "true);",
        "sum_exscan": scan + "false);",
    }
    data = {
        "broadcast": "Broadcast({call}, {group}, dest, source, {bytes}, PE_root, {writes_root});",
        "collect": "Collect({call}, {group}, dest, source, {bytes});",
        "fcollect": "Fcollect({call}, {group}, dest, source, {bytes});",
        "alltoall": "Alltoall({call}, {group}, dest, source, {bytes});",
        "alltoalls": "Alltoalls({call}, {group}, dest, source, dst, sst, nelems, {size});",
    }
    for name, body in data.items():
        new = body.replace("{group}", "TeamGroup(team)").replace("{writes_root}", "true")
        bodies[name] = "return " + new
        bodies["old " + name] = body.replace("{group}", old_set).replace("{writes_root}", "false")
    for name in ("and", "or", "xor", "max", "min", "sum", "prod"):
        call = ("Reduce({call}, {group}, dest, source, {count}, ReduceTypeOf<{T}>(), "
                f"ReduceOp::k{name.title()});")
        new = call.replace("{group}", "TeamGroup(team)").replace("{count}", "nreduce")
        old = call.replace("{group}", old_set).replace("{count}", "static_cast<size_t>(nreduce)")
        bodies[name + "_reduce"] = "return " + new
        bodies[f"old {name}_to_all"] = old
    return bodies


# Setup, memory, teams, contexts, ordering, locks: what is one call.
_SHORT = {
    "init_thread": "return InitThread({call}, requested, provided);",
    "query_thread": "*provided = QueryThread({call});",
    "query_initialized": "*initialized = QueryInitialized();",
    "finalize": "Finalize({call});",
    "global_exit": "GlobalExit({call}, status);",
    "my_pe": "return MyPe({call});",
    "n_pes": "return PeCount({call});",
    "pe_accessible": "return PeAccessible({call}, pe);",
    "addr_accessible": "return AddrAccessible({call}, addr, pe);",
    "ptr": "return Pointer({call}, dest, pe);",
    "malloc": "return Malloc({call}, size, 0, false, 0);",
    "calloc": "return Malloc({call}, Bytes(count, size), 0, true, 0);",
    "align": "return Malloc({call}, size, alignment, false, 0);",
    "malloc_with_hints": "return Malloc({call}, size, 0, false, hints);",
    "realloc": "return Realloc({call}, ptr, size);",
    "free": "Free({call}, ptr);",
    "team_my_pe": "return TeamMyPe({call}, TeamOf(team));",
    "team_n_pes": "return TeamPeCount({call}, TeamOf(team));",
    "team_destroy": "TeamDestroy({call}, TeamOf(team));",
    "team_ptr": "return TeamPointer({call}, TeamOf(team), dest, pe);",
    "ctx_destroy": "ContextDestroy({call}, ContextOf(ctx));",
    "ctx_session_stop": "ContextSessionStop({call}, ContextOf(ctx));",
    "fence": "Fence({call}, {ctx});",
    "quiet": "Quiet({call}, {ctx});",
    "pe_quiet": "PeQuiet({call}, {ctx}, target_pes, npes);",
    "set_lock": "SetLock({call}, lock);",
    "clear_lock": "ClearLock({call}, lock);",
    "test_lock": "return TestLock({call}, lock);",
    "pcontrol": "static_cast<void>(level);",
    "shmemx_heap_preinit_thread": "return HeapPreinit({call}, requested, provided);",
    "shmemx_heap_postinit": "HeapPostinit({call});",
    "shmemx_space_create": "return HandleOf(SpaceCreate({call}, device, size));",
    "shmemx_space_destroy": "SpaceDestroy({call}, SpaceOf(space));",
    "shmemx_space_malloc": "return SpaceMalloc({call}, SpaceOf(space), size, 0, false);",
    "shmemx_space_calloc": (
        "return SpaceMalloc({call}, SpaceOf(space), Bytes(count, size), 0, true);"),
    "shmemx_space_align": "return SpaceMalloc({call}, SpaceOf(space), size, alignment, false);",
    "shmemx_device_count": "return DeviceCount({call});",
    "shmemx_device_prepare": "return DevicePrepare({call}, TeamOf(team), device);",
    "shmemx_device_release": "DeviceRelease({call}, table);",
}

# And what is more: a name, and behind it lines that begin with blanks.
_LONG = """
init
  int provided = SHMEM_THREAD_SINGLE;
  InitThread({call}, SHMEM_THREAD_SINGLE, &provided);
info_get_version
  *major = SHMEM_MAJOR_VERSION;
  *minor = SHMEM_MINOR_VERSION;
info_get_name
  __builtin_memcpy(name, SHMEM_VENDOR_STRING, sizeof(SHMEM_VENDOR_STRING));
team_get_config
  TeamConfig found = {{}};
  const int failed = TeamGetConfig({call}, TeamOf(team), config_mask, &found);
  if (failed == 0 && (config_mask & SHMEM_TEAM_NUM_CONTEXTS) != 0) {{
    config->num_contexts = found.num_contexts;
  }}
  return failed;
team_translate_pe
  return TeamTranslatePe({call}, TeamOf(src_team), src_pe, TeamOf(dest_team));
team_split_strided
  TeamConfig copy;
  Team* made = nullptr;
  const int failed = TeamSplitStrided({call}, TeamOf(parent_team), start, stride, size,
      ConfigOf(config, &copy), config_mask, &made);
  *new_team = HandleOf(made);
  return failed;
team_split_2d
  TeamConfig x_copy;
  TeamConfig y_copy;
  Team* x_made = nullptr;
  Team* y_made = nullptr;
  const int failed = TeamSplit2d({call}, TeamOf(parent_team), xrange,
      ConfigOf(xaxis_config, &x_copy), xaxis_mask, &x_made,
      ConfigOf(yaxis_config, &y_copy), yaxis_mask, &y_made);
  *xaxis_team = HandleOf(x_made);
  *yaxis_team = HandleOf(y_made);
  return failed;
ctx_create
  Context* made = nullptr;
  const int failed = ContextCreate({call}, WorldTeam(), options, &made);
  *ctx = HandleOf(made);
  return failed;
team_create_ctx
  Context* made = nullptr;
  const int failed = ContextCreate({call}, TeamOf(team), options, &made);
  *ctx = HandleOf(made);
  return failed;
ctx_get_team
  Team* found = nullptr;
  const int failed = ContextGetTeam({call}, ContextOf(ctx), &found);
  *team = HandleOf(found);
  return failed;
ctx_session_start
  static_cast<void>(config);  // a hint that nothing here uses
  static_cast<void>(config_mask);
  ContextSessionStart({call}, ContextOf(ctx), options);
shmemx_wtime
  const auto since_past = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since_past).count();
shmemx_heap_info
  HeapInfo found;
  GetHeapInfo({call}, &found);
  *info = InfoOf(found);
shmemx_heap_preinit
  int provided = SHMEM_THREAD_SINGLE;
  HeapPreinit({call}, SHMEM_THREAD_SINGLE, &provided);
shmemx_heap_create
  static_cast<void>(device_index);  // the memory tells whose it is
  HeapCreate({call}, base, size, device_type);
shmemx_space_info
  SpaceInfo found;
  GetSpaceInfo({call}, SpaceOf(space), &found);
  *info = {{.device = found.device,
           .cpu_reach = found.cpu_reach ? 1 : 0,
           .heap = InfoOf(found.heap)}};
"""


def _life():
    long = {}
    for line in _LONG.strip("\n").split("\n"):
        if line.startswith("  "):
            long[name] += line[2:] + "\n"
        else:
            name = line
            long[name] = ""
    return {**_SHORT, **{name: body.rstrip("\n") for name, body in long.items()}}


_OLD_NAMES = {"start_pes": "init", "_my_pe": "my_pe", "_num_pes": "n_pes", "shmalloc": "malloc",
              "shfree": "free", "shrealloc": "realloc", "shmemalign": "align"}


def _on_queues(bodies):
    # `found` may be a device's memory.
    own = {"g": "Get({call}, {ctx}, found, source, {size}, pe, Completion::kBlocking);"}
    made = {}
    for family in FAMILIES:
        if family.group == "on queues":
            called = family.key.removesuffix("_on_queue")
            action = own.get(called, bodies[called]).removeprefix("return ")
            made[family.key] = f"return OnQueue({{call}}, queue, [=] {{{{ {action} }}}});"
    return made


def _bodies():
    life = _life()
    bodies = {**life, **_moves(), **_atomics(), **_waits(), **_collectives()}
    bodies.update({"old " + old: life[new] for old, new in _OLD_NAMES.items()})
    return {**bodies, **_on_queues(bodies)}


# Parameters that definitions leave alone: gcc would warn of their names.
_UNUSED = {"pSync", "pWrk", "npes"}


def _definition(function, body):
    element = function.element
    size = None
    if element:
        size = str(element.bytes) if element.bits_in_name else f"sizeof({element.c})"
    body = body.format(
        call=f'"{function.name}"',
        ctx="ContextOf(ctx)" if function.with_context else "DefaultContext()",
        T=element.c if element else "", size=size,
        bytes="nelems" if element and element.name == "mem" else f"Bytes(nelems, {size})")
    unused = _UNUSED - ({"npes"} if function.family.key == "pe_quiet" else set())
    pieces = [p.type if p.name in unused else str(p) for p in function.parameters] or ["void"]
    head = text.call(f"FERRY_SHMEM_CALL({function.result}, {function.name}, ", pieces, ") {")
    lines = "\n".join("  " + line for line in body.split("\n"))
    return f"{head}\n{lines}\n}}"


def sources():
    """File -> text: one source for each part of the header, and one for what no standard has."""
    bodies = _bodies()
    files = {}
    parts = [(part.file[:-2], part.groups) for part in PARTS + (QUEUES_PART,)]
    parts.append(("extensions", ("also",)))
    for name, groups in parts:
        families = [f for f in FAMILIES + DEPRECATED if f.group in groups]
        definitions = [_definition(function, bodies[function.family.key])
                       for family in families for function in table.functions([family])]
        includes = "#include <chrono>\n\n" if name == "extensions" else ""
        files[f"functions_{name}.cc"] = (
            f"// Made by definitions.py from the table: the functions of shmem.h's part {name}.\n\n"
            f'{includes}#include "shmem/api/call.h"\n\nnamespace ferry::shmem {{\n\n'
            + "\n\n".join(definitions) + "\n\n}  // namespace ferry::shmem\n")
    return files


def exports():
    """The linker's list of what the library shows: every function of the table, twice."""
    patterns = ["shmem_*", "pshmem_*", "shmemx_*", "pshmemx_*"]
    others = [f for f in table.functions() if not f.name.startswith(("shmem_", "shmemx_"))]
    names = patterns + [name for function in others for name in (function.name, function.twin)]
    lines = "\n".join(f"    {name};" for name in names)
    return {"exports.lds": "/* Made by definitions.py: what libferry_shmem shows to a program. */\n"
            f"{{\n  global:\n{lines}\n  local: *;\n}};\n"}
