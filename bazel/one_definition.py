"""Finds types and functions that are defined twice under one name: the linker keeps one of the two, whichever
it sees first, for everybody. Reads the files named as arguments; prints a line for each such name.

It knows just enough of C++ for this code: namespaces, and definitions directly in them, by their braces. What
lies in an unnamed namespace, or is static, belongs to its file alone.
"""
import re
import sys

# Names that several programs define, each for itself. A test of a GPU backend tells the conformance suite by
# ConformanceBackends, VendorsUnderTest and KernelDrivers what to test; a program of tests/vendor_memory reaches
# the library of its GPU's vendor by the functions of ferry::vendor_memory, and one that makes a symmetric heap
# of its own by those of ferry::own_heap.
PER_PROGRAM = ('main', 'ferry::gpu::ConformanceBackends', 'ferry::gpu::VendorsUnderTest', 'ferry::gpu::KernelDrivers',
               'ferry::client::OpenEndpoint',
               *(f'ferry::vendor_memory::{name}'
                 for name in ('Begin', 'Copy', 'DeviceCount', 'FreeAddresses', 'Kinds', 'LeastMappingBytes', 'MapMemory',
                              'NewMemory', 'ReleaseMemory', 'ReserveAddresses', 'UnmapMemory', 'UseDevice', 'VendorName')),
               *(f'ferry::own_heap::{name}' for name in ('BeginMemory', 'Give', 'IsForCpus', 'Take', 'TypeOf')))

TOKEN = re.compile(r'''
    (?P<skip>//[^\n]* | /\*.*?\*/ | \#(?:[^\n\\]|\\.|\\\n)* | \s+)
  | (?P<text>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)" | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)+')
  | (?P<word>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[\w.]|'\w)*)
  | (?P<other>:: | .)
''', re.VERBOSE | re.DOTALL)


def tokens(source):
    """(token, line) of all that the compiler would see, preprocessor lines left out."""
    line = 1
    for match in TOKEN.finditer(source):
        if match.lastgroup != 'skip' and match.group('skip') is None:
            yield match.group(), line
        line += match.group().count('\n')


def without_attributes(statement):
    """`alignas(...)` and `[[...]]` say nothing about what is defined."""
    text = ' '.join(statement)
    text = re.sub(r'\[ \[.*?\] \]', '', text)
    return re.sub(r'\b(?:alignas|__attribute__) \( (?:[^()]|\([^()]*\))* \)', '', text).split()


def defined(statement):
    """What the statement before a `{` defines: ('namespace', name), ('type', name), ('function', signature),
    or None."""
    words = without_attributes(statement)
    if not words:
        return None
    if words[0] == 'inline' and 'namespace' in words[:2]:
        words = words[1:]
    if words[0] == 'namespace':
        return 'namespace', ''.join(words[1:])
    if words[0] == 'extern' or '=' in words and '(' not in words[:words.index('=')]:
        return None
    if words[0] == 'template':
        depth = 0
        for at, word in enumerate(words):
            depth += {'<': 1, '>': -1}.get(word, 0)
            if depth == 0 and at > 0:
                words = words[at + 1:]
                break
    if words and words[0] in ('struct', 'class', 'union', 'enum'):
        head = words[1:words.index(':')] if ':' in words else words[1:]
        head = [word for word in head if word not in ('class', 'struct', 'final')]
        return ('type', ''.join(head)) if head and '(' not in head else None
    if '(' in words and 'static' not in words and 'operator' not in words:
        opening = words.index('(')
        name = opening - 1
        while name >= 2 and words[name - 1] == '::':
            name -= 2
        depth, closing = 0, opening
        for closing in range(opening, len(words)):
            depth += {'(': 1, ')': -1}.get(words[closing], 0)
            if depth == 0:
                break
        return 'function', ''.join(words[name:opening]) + ' ' + ' '.join(words[opening:closing + 1])
    return None


def definitions(source):
    """(qualified name, kind, line) of each definition in a named namespace."""
    scopes = []  # of open braces: a namespace's name, '' for an unnamed one, None for anything else
    statement, begun, parentheses = [], 0, 0
    for token, line in tokens(source):
        if token in '()' and len(token) == 1:
            parentheses += 1 if token == '(' else -1
        if parentheses == 0 and token == '{':
            what = defined(statement) if None not in scopes else None
            if what and what[0] == 'namespace':
                scopes.append(what[1])
            else:
                if what and '' not in scopes:
                    yield '::'.join(scopes + [what[1]]), what[0], begun
                scopes.append(None)
            statement = []
        elif parentheses == 0 and token == '}':
            if scopes:
                scopes.pop()
            statement = []
        elif parentheses == 0 and token == ';':
            statement = []
        else:
            if not statement:
                begun = line
            statement.append(token)


def defined_twice(paths):
    """A line for each name that is."""
    places = {}
    for path in paths:
        with open(path, encoding='utf-8') as file:
            for name, kind, line in definitions(file.read()):
                # Functions in headers are inline or templates, and a header is not defined twice.
                if kind == 'type' or path.endswith('.cc'):
                    places.setdefault((kind, name), {}).setdefault(path, line)
    for (kind, name), files in sorted(places.items()):
        if len(files) > 1 and name.split(' ')[0] not in PER_PROGRAM:
            where = ', '.join(f'{path}:{line}' for path, line in files.items())
            yield f'{kind} {name}: {where}'


if __name__ == '__main__':
    for problem in defined_twice(sys.argv[1:]):
        print(problem)
