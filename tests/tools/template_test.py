#!/usr/bin/env python3
"""template_test.py: rlx_template_render writes what Jinja writes, byte by byte, for snippets of the language and
for the published templates that tools/get-templates got.

Jinja is set up as the programs that models are taught with set it up. It comes from tools/setup test.
template_test.py [PART]: only templates and snippets whose names have that part."""
import ctypes
import functools
import itertools
import json
import os
import pathlib
import re
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VENV = ROOT / "build" / "template-venv"
FOUND = ROOT / "build" / "templates"
BUILD = pathlib.Path(os.environ.get("RLX_BUILD_DIR", ROOT / "build" / "release"))
NOW = 1753920000  # a Thursday
SKIP = 77

try:
    import jinja2
except ImportError:
    other = VENV / "bin" / "python"
    if other.exists() and pathlib.Path(sys.executable) != other:
        os.execv(other, [str(other), *sys.argv])
    print("there is no jinja2: tools/setup test installs it")
    sys.exit(SKIP)
from jinja2 import nodes  # noqa: E402
from jinja2.ext import Extension  # noqa: E402
from jinja2.sandbox import SandboxedEnvironment  # noqa: E402


# ---- Jinja as a reference -------------------------------------------------------------------


class Generation(Extension):
    """{% generation %}: marks what an assistant says; it changes nothing here."""
    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True))


class Raised(Exception):
    pass


def reference():
    def raise_exception(message):
        raise Raised(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    env = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                               extensions=["jinja2.ext.loopcontrols", Generation])
    env.policies["json.dumps_kwargs"] = {}
    env.filters["tojson"] = tojson
    env.filters["safe"] = str  # nothing is escaped here, so nothing has to be safe from it
    env.filters["from_json"] = json.loads
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: time.strftime(f, time.gmtime(NOW))
    return env


ENVIRONMENT = reference()


@functools.lru_cache(maxsize=None)
def compiled(source):
    return ENVIRONMENT.from_string(source)


def wanted(source, variables):
    """Its text, or what it raises."""
    try:
        return compiled(source).render(**{"bos_token": "", "eos_token": "", "messages": [],
                                                 "add_generation_prompt": False, **variables})
    except Exception as e:  # whatever it does not like
        return e


# ---- ours -----------------------------------------------------------------------------------


class Str(ctypes.Structure):
    _fields_ = [("ptr", ctypes.c_char_p), ("len", ctypes.c_size_t)]


class Chat(ctypes.Structure):
    """rlx_chat_desc"""
    _fields_ = [("size", ctypes.c_uint32), ("messages", ctypes.c_void_p),
                ("message_count", ctypes.c_size_t), ("variables", Str), ("tools", Str),
                ("add_generation_prompt", ctypes.c_bool), ("thinking", ctypes.c_int),
                ("bos_token", Str), ("eos_token", Str), ("now", ctypes.c_int64),
                ("max_steps", ctypes.c_uint64), ("max_output", ctypes.c_size_t),
                ("max_memory", ctypes.c_size_t)]


class Span(ctypes.Structure):
    _fields_ = [("len", ctypes.c_size_t), ("data", ctypes.c_bool)]


class Rendered(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("len", ctypes.c_size_t), ("span", ctypes.POINTER(Span)), ("span_count", ctypes.c_size_t)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("node", ctypes.c_int32), ("stage", ctypes.c_char * 16),
                ("backend", ctypes.c_char * 16), ("op", ctypes.c_char * 48),
                ("label", ctypes.c_char * 64), ("message", ctypes.c_char * 512)]


class Ours:
    """The library, with one template at a time."""

    def __init__(self):
        self.lib = ctypes.CDLL(str(BUILD / "librlx.so"))
        self.ctx, self.t, self.source, self.error = ctypes.c_void_p(), ctypes.c_void_p(), None, None
        version = int(re.search(r"#define RLX_VERSION (\d+)",
                                (ROOT / "include/rlx/base.h").read_text())[1])
        if self.lib.rlx_context_create(version, None, ctypes.byref(self.ctx), None):
            sys.exit("template_test: there is no context")

    def parse(self, source):
        err, own = Error(), source.encode()
        self.lib.rlx_template_close(self.t)
        self.t, self.source, self.error = ctypes.c_void_p(), source, None
        if self.lib.rlx_template_parse(self.ctx, Str(own, len(own)), ctypes.byref(self.t),
                                       ctypes.byref(err)):
            self.error = err.message.decode()

    def render(self, source, variables):
        """Its text and an error, of which one is None."""
        if source != self.source:
            self.parse(source)
        if self.error:
            return None, self.error
        own, out, err = json.dumps(variables).encode(), Rendered(), Error()
        chat = Chat(size=ctypes.sizeof(Chat), variables=Str(own, len(own)), now=NOW)
        if self.lib.rlx_template_render(self.t, ctypes.byref(chat), ctypes.byref(out),
                                        ctypes.byref(err)):
            return None, err.message.decode()
        text = ctypes.string_at(out.at, out.len)
        if sum(out.span[i].len for i in range(out.span_count)) != len(text):
            sys.exit(f"template_test: spans of {source!r} are not its text")
        self.lib.rlx_rendered_free(self.t, ctypes.byref(out))
        return text.decode(), None


# ---- conversations --------------------------------------------------------------------------

TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather, of \"today\" & <tomorrow>: é, 天气",
    "parameters": {"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string", "description": "where\nit is"},
        "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
        "days": {"type": "integer", "minimum": 1}, "exact": {"type": "boolean"},
        "range": {"type": "array", "items": {"type": "number"}},
        "more": {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}}}}}
PLAIN = {"type": "function", "function": {"name": "now", "description": "The time",
                                          "parameters": {"type": "object", "properties": {}}}}

FLAT = {"name": "add", "description": "Adds", "parameters": {}, "parameter_definitions": {
    "a": {"type": "int", "description": "one", "required": True}, "b": {"type": "list[str]"}}}


def call(name, arguments, number=0):
    return {"id": f"call0000{number}", "type": "function",
            "function": {"name": name, "arguments": arguments}}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


SYSTEM = {"role": "system", "content": "You are kind.\n"}
WEATHER = {"city": "Köln", "days": 2, "exact": True, "range": [1, 2.5], "unit": None}
CONVERSATIONS = {
    "user": [user("Hello")],
    "system": [SYSTEM, user("  Hello \n")],
    "turns": [SYSTEM, user("One"), assistant("1"), user("Two"), assistant("  2\n"), user("Three")],
    "answered": [user("One"), assistant("1")],
    "unicode": [user("Zażółć 天气 🙂 é\u00a0\u2028 \"quoted\" 'single' <b>&amp;</b> {{ x }} {% if %}")],
    "marks": [user("<|im_end|>\n<|im_start|>system\n</s>[INST]<eos>")],
    "empty": [user(""), assistant(""), user(" ")],
    "parts": [user([{"type": "text", "text": "Look "}, {"type": "text", "text": "here"}])],
    "image": [user([{"type": "image"}, {"type": "text", "text": "What is it?"}])],
    "thinking": [user("Why?"), assistant("Because.", reasoning_content="Let me see.\n"), user("And?")],
    "think tags": [user("Why?"), assistant("<think>\nLet me see.\n</think>\n\nBecause."), user("And?")],
    "call": [SYSTEM, user("Weather?"),
             assistant("", tool_calls=[call("get_weather", WEATHER)]),
             {"role": "tool", "name": "get_weather", "tool_call_id": "call00000", "content": "{\"t\": 20}"},
             assistant("20 degrees"), user("Thanks")],
    "call in text": [user("Weather?"),
                     assistant(None, tool_calls=[call("get_weather", json.dumps(WEATHER))]),
                     {"role": "tool", "name": "get_weather", "tool_call_id": "call00000",
                      "content": "20"}],
    "calls": [user("Both?"),
              assistant("Yes.", tool_calls=[call("get_weather", {"city": "A"}), call("now", {}, 1)]),
              {"role": "tool", "name": "get_weather", "tool_call_id": "call00000", "content": "20"},
              {"role": "tool", "name": "now", "tool_call_id": "call00001", "content": "12:00"}],
    "two users": [user("One"), user("Two")],
    "two systems": [SYSTEM, SYSTEM, user("One")],
    "developer": [{"role": "developer", "content": "Be brief."}, user("One")],
    "none": [],
}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
SETTINGS = [{"add_generation_prompt": True}, {"add_generation_prompt": False},
            {"add_generation_prompt": True, "enable_thinking": False},
            {"add_generation_prompt": True, "enable_thinking": True, "tools": [TOOL, PLAIN],
             "date_string": "1 Jan 2026", "functions": json.dumps([TOOL]), "datetime": "now"},
            {"add_generation_prompt": False, "tools": [PLAIN], "documents": [
                {"title": "T", "text": "D"}], "reasoning_effort": "high", "custom_tools": None},
            {"add_generation_prompt": True, "tools": [FLAT], "functions": [FLAT], "datetime": "now"}]


def contexts():
    for (name, messages), (i, more) in itertools.product(CONVERSATIONS.items(), enumerate(SETTINGS)):
        yield f"{name}, {i}", {**TOKENS, **more, "messages": messages}


# ---- snippets -------------------------------------------------------------------------------

VALUES = {"s": "  Hello, Wörld  ", "n": 7, "f": 2.5, "big": 1e22, "small": 1e-7, "neg": -3, "t": True,
          "z": None, "l": [3, 1, 2], "e": [], "d": {"b": 1, "a": [1, {"x": None}], "C": "q'\""},
          "w": ["b", "A", "c", "a"], "text": "one\ntwo\n\n  three\n", "uni": "é天🙂\u00a0x",
          "people": [{"name": "Ann", "age": 30, "in": {"k": [5]}}, {"name": "bob", "age": 25, "in": {"k": [6]}},
                     {"name": "Cy", "age": 30, "in": {"k": [4]}}], "html": "<a href='x'>&\"</a>"}
EXPRESSIONS = """
s|trim ; s|upper ; s|lower ; s|title ; s|capitalize ; 'ß é'|upper ; "it's o'neil"|title ; s|length ; uni|length
uni[1] ; uni[-1] ; uni[::-1] ; uni[1:3] ; s[2:7] ; s[:-2] ; s[-5:] ; s[::2] ; s[100:] ; l[::-1] ; l[1:] ; l[-1]
l[5] ; l[5] is defined ; s[50] is defined ; d.b ; d['b'] ; d.nope ; d.nope is defined ; d.a[1].x ; d['items'] is defined
nope ; nope is undefined ; nope.x ; nope|default('x') ; nope|d ; z|default('x') ; z|default('x', true) ; ''|default('y', boolean=true)
1 + 2 * 3 ; 7 // 2 ; -7 // 2 ; 7 % 3 ; -7 % 3 ; 7 % -3 ; 7 / 2 ; 6 / 2 ; 2 ** 10 ; 2 ** -1 ; -2 ** 2 ; 7.5 // 2 ; -7.5 % 2
1 + 1.5 ; 0.1 + 0.2 ; 1e16 ; 123456789.125 ; 1e15 + 0.3 ; big ; small ; f ; f * 2 ; 10 / 4 ; 1.0 ; -0.0 ; 100000.0 ; 0.0001
'a' ~ 1 ~ none ~ true ~ 2.0 ; 'a' + 'b' ; 'ab' * 3 ; [1] + [2] ; [0] * 3 ; 1 + 'a' ; 'a' + 1 ; 'a' + none ; l + 'a'
1 == 1.0 ; true == 1 ; 'a' == 'a' ; [1, 2] == [1, 2] ; {'a': 1} == {'a': 1.0} ; none == false ; nope == nope2 ; 1 < 2 < 3 ; 1 < 2 > 5
'a' < 'b' ; 'Z' < 'a' ; [1, 2] < [1, 3] ; 1 < 'a' ; none < 1 ; 'é' > 'z' ; 'a' <= 'a' ; 2 >= 3 ; 1 != 2
'el' in 'Hello' ; 1 in l ; 'b' in d ; 'x' not in d ; 'x' in nope ; 1 in 5 ; '' in 'a' ; not 'a' in 'b' ; none in [none]
1 and 2 ; 0 and 2 ; 0 or 'x' ; '' or none ; not 0 ; not not 'a' ; t and not z ; 1 if t else 2 ; 1 if z else 2 ; 1 if z
(1, 2) ; (1,) ; () ; [1, 'a', none, true, 2.0, "it's", 'q"', 'both\\'"'] ; {'a': 1, 2: 'b'} ; [nope] ; 1, 2
"a" "b" 'c' ; 'tab\\there' ; 'new\\nline' ; 'u\\u00e9\\x41' ; 'back\\\\slash' ; 'odd\\q' ; '\\'' ; "\\101"
l is iterable ; s is iterable ; n is iterable ; d is mapping ; l is mapping ; l is sequence ; s is string ; n is number ; f is float
n is integer ; t is boolean ; t is true ; z is none ; z is not none ; nope is defined ; n is odd ; n is even ; n is divisibleby 7
n is divisibleby(2) ; n is eq 7 ; n is eq(7) ; n is ne 7 ; n is lt 8 ; n is ge 8 ; 1 is in [1] ; 'a' is in 'abc' ; 'abc' is lower ; 'ABC' is upper
n is sameas 7 ; true is sameas true ; range is callable ; s is callable ; t is number ; t is integer ; d is sequence ; nope is iterable
n is not defined or t ; s is string and n is number ; not n is string ; (n is string) is false
l|sort ; l|sort(reverse=true) ; w|sort ; w|sort(case_sensitive=true) ; people|map(attribute='name')|list ; people|sort(attribute='age')|map(attribute='name')|join(',')
people|sort(attribute='name', reverse=true)|map(attribute='name')|list ; people|selectattr('age', 'equalto', 30)|map(attribute='name')|list
people|rejectattr('age', 'gt', 26)|list ; people|selectattr('nope')|list ; people|selectattr('in.k.0', '>=', 5)|map(attribute='name')|list
people|map(attribute='nope', default='-')|list ; people|sum(attribute='age') ; people|join('|', attribute='name') ; people|map(attribute='in.k')|list
w|map('upper')|list ; w|map('replace', 'a', 'x')|list ; l|select('odd')|list ; l|reject('odd')|list ; [0, 1, '']|select|list ; ['a', '']|reject|list
l|first ; l|last ; e|first ; l|min ; l|max ; e|min ; w|min ; w|max ; l|sum ; l|sum(start=10) ; e|sum ; l|length ; d|length ; l|count
[1, 2, 1, 'a', 'A']|unique|list ; l|reverse|list ; 'abc'|reverse ; l|list ; 'abc'|list ; d|list ; d|dictsort ; d|dictsort(true) ; {'a': 2, 'b': 1}|dictsort(by='value')
{'a': 2, 'b': 1}|dictsort(reverse=true) ; d|items|list ; nope|items|list ; d.items()|list ; d.keys()|list ; d.values()|list
d.get('b') ; d.get('x') ; d.get('x', 5) ; d.get('C').upper() ; l|join ; l|join(', ') ; w|join(d='-') ; []|join('x') ; 'abc'|join('.')
d|tojson ; d|tojson(indent=2) ; d|tojson(indent=4, sort_keys=true) ; d|tojson(separators=(',', ':')) ; uni|tojson ; uni|tojson(ensure_ascii=true)
html|tojson ; [1.0, 1e22, 1e-7, none, true, 'a\\nb\\x01\\x7f']|tojson ; {1: 2, 'x': {}, 'y': []}|tojson(indent=2) ; nope|tojson ; (1, 2)|tojson ; '"\\\\/'|tojson
'{"a": [1, 2.5, null, true, "x"]}'|from_json ; '1'|int ; '1.9'|int ; 'x'|int ; 'x'|int(5) ; 2.9|int ; -2.9|int ; true|int ; ' 12 '|int ; none|int
'1.5'|float ; 'x'|float ; 3|float ; -3|abs ; 3.5|abs ; 2.5|round ; 3.5|round ; 2.345|round(2) ; 2.341|round(2, 'ceil') ; 2.349|round(1, 'floor') ; 42|round
text|indent ; text|indent(2) ; text|indent(2, true) ; text|indent(2, first=true, blank=true) ; text|indent('> ') ; ''|indent(2, true) ; 'a'|indent
'aXbXc'|replace('X', '-') ; 'aXbXc'|replace('X', '-', 1) ; 'abc'|replace('', '-') ; 'aaa'|replace('aa', 'b') ; 5|replace('5', '6')
5|string ; none|string ; l|string ; 'a'|safe ; 'xxaxx'|trim('x') ; '\\u00a0 a \\u3000'|trim ; 5|trim
'a,b,,c'.split(',') ; 'a b  c '.split() ; 'a b  c '.split(none, 1) ; 'a,b,c'.split(',', 1) ; ''.split(',') ; ''.split() ; 'abc'.split('') ; 'a,b,c'.rsplit(',', 1)
'a--b--c'.split('--')[-1] ; 'aaa'.rsplit('aa') ; 'a\\nb\\r\\nc\\n'.splitlines() ; 'a\\nb'.splitlines(true) ; 'abc'.split('b')[0]
'  a '.strip() ; '  a '.lstrip() ; '  a '.rstrip() ; 'xyaxy'.strip('xy') ; 'xyaxy'.lstrip('yx') ; 'xyaxy'.rstrip('y') ; 'éaé'.strip('é') ; '\\n\\na\\n'.strip('\\n')
'abc'.startswith('a') ; 'abc'.startswith(('x', 'ab')) ; 'abc'.endswith('bc') ; 'abc'.endswith(('x',)) ; 'abc'.removeprefix('a') ; 'abc'.removesuffix('x')
'abcabc'.find('c') ; 'éc'.find('c') ; 'abcabc'.rfind('c') ; 'abc'.find('x') ; 'abcabc'.count('bc') ; 'abc'.count('') ; 'abc'.index('c') ; 'abc'.index('x')
'aXb'.replace('X', '-') ; 'aXbX'.replace('X', '-', 1) ; 'abc'.upper() ; 'aBc'.lower() ; 'hello world'.title() ; 'hELLO'.capitalize() ; '-'.join(['a', 'b']) ; '-'.join([1])
'{} {}'.format(1, 'b') ; '{0}{1}{0}'.format('a', 'b') ; '{x}'.format(x=none) ; '{{}}'.format() ; '{}'.format() ; '123'.isdigit() ; 'a1'.isalnum() ; 'ab'.isalpha() ; ' '.isspace()
range(3)|list ; range(1, 4)|list ; range(5, 0, -2)|list ; range(0)|list ; dict(a=1, b=2) ; dict({'x': 1}, y=2) ; s.nope is defined ; s.nope() ; n()
namespace(a=1).a ; namespace({'a': 2}).a ; namespace().b is defined ; strftime_now('%Y-%m-%d %H:%M:%S %j %a %A %b %B %p %I %y %%') ; strftime_now('%d %b %Y')
raise_exception('no') ; d.b.c ; d.b.c.d ; n.x ; n[0] ; -n ; +n ; -s ; - n|abs ; n|abs - 1 ; (1 + 2)|string ~ 'x' ; l|sort|first + 1 ; l[0] + l[1] * 2
'a' if n > 5 and s is string else 'b' ; 'x' if nope is defined and nope.y ; l[n - 6] ; l[-n:] ; people[0].name[0] ; people[0]['in'].k.0 ; d.a.0
'%s' ; loop ; l.append(4) ; {'a': {'b': [1, (2, 3)]}} ; [true, false, none] ; [True, False, None] ; 1_000 ; 1.5e3 ; [[]] ; [{}] ; {'a': nope}
s|trim|upper|replace('L', 'l')|length ; w|map('upper')|join|lower ; (people|first).name ; l|length > 2 and 'many' ; n in [7, 8] and f not in l
z[:1] ; (0 / neg)|abs ; (1, 2).count(1) ; (1, 2).index(2) ; d[1:] ; nope[1:] ; l.copy()
uni|upper ; 'ÀÉ'|lower ; 'ЖЗ'|lower ; 'жз'|upper ; 'αβγ'|upper ; '１'.isdigit() ; 'ÿ'|upper ; uni|capitalize ; 'éa éb'|title
""".strip()
STATEMENTS = {
    "trim": "a\n{% if t %}\nb\n  {% endif %}\nc\n",
    "minus": "a  \n {%- if t -%} \n b \n {%- endif -%} \n c",
    "plus": "a\n  {%+ if t %}\nb{% endif +%}\nc",
    "output keeps": "a\n  {{ n }}\nb {{- n -}}  c",
    "comment": "a\n  {# x #}\nb{#- y -#}  c {# {{ z }} {% %} #} d",
    "raw": "{% raw %}{{ x }}{% if %}{% endraw %}|  {%- raw -%}  a  {%- endraw -%}  b",
    "raw lines": "a\n{% raw %}\nx\n{% endraw %}\nb",
    "crlf": "a\r\n{% if t %}\r\nb\r\n{% endif %}\r\nc\r\n\r\n",
    "end": "a\n\n", "only newline": "\n", "nothing": "",
    "line start": "{% if t %}\n    {% if t %}\nx\n    {% endif %}\n{% endif %}\n   y",
    "after output": "{{ n }}  {% if t %}x{% endif %}\n", "tabs": "\t{% if t %}\n\tx\n\t{% endif %}\n",
    "strip then block": "x {%- if t %}\n  {% if t %}\n a{% endif %}{% endif %}",
    "elif": "{% if z %}1{% elif n == 8 %}2{% elif n == 7 %}3{% else %}4{% endif %}",
    "for": "{% for x in l %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ ',' if not loop.last }}{% endfor %}",
    "for else": "{% for x in e %}x{% else %}none{% endfor %}{% for x in nope %}x{% else %}none{% endfor %}",
    "for if": "{% for x in l if x > 1 %}{{ loop.index0 }}{{ x }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% else %}no{% endfor %}",
    "for neighbours": "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem is defined }}{{ loop.revindex }}{{ loop.revindex0 }} {% endfor %}",
    "for pairs": "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k, v in d|items %}{{ k }}{% endfor %}{% for (a, b) in [(1, 2)] %}{{ a + b }}{% endfor %}",
    "for dict": "{% for k in d %}{{ k }}{% endfor %}", "for text": "{% for c in uni %}[{{ c }}]{% endfor %}",
    "for bad": "{% for x in 5 %}{% endfor %}", "for none": "{% for x in none %}{% endfor %}",
    "for unpack bad": "{% for a, b in [1, 2] %}{% endfor %}", "for few": "{% for a, b in [(1,)] %}{% endfor %}",
    "break": "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}.",
    "continue": "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}.",
    "nested loops": "{% for a in l %}{% for b in l %}{% if b == a %}{% break %}{% endif %}{{ a }}{{ b }}{{ loop.index }} {% endfor %}{{ loop.index }};{% endfor %}",
    "loop scope": "{% set x = 1 %}{% for i in l %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}{{ i is defined }}",
    "if scope": "{% if t %}{% set x = 5 %}{% endif %}{{ x }}",
    "namespace": "{% set ns = namespace(a=1, b='x') %}{% for i in l %}{% set ns.a = ns.a + i %}{% set ns.c = i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}",
    "not a namespace": "{% set d.x = 1 %}", "set several": "{% set a, b = 1, 'x' %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}",
    "set block": "{% set x %}a {{ n }}\n{% endset %}[{{ x }}]{% set y | upper | trim %} abc {% endset %}[{{ y }}]",
    "set block scope": "{% set q = 1 %}{% set x %}{% set q = 2 %}{{ q }}{% endset %}{{ q }}{{ x }}",
    "filter block": "{% filter upper %}abc {{ n }} def{% endfilter %}{% filter replace('a', 'b')|trim %} aa {% endfilter %}|",
    "generation": "{% generation %}said {{ n }}{% endgeneration %}!",
    "macro": "{% macro m(a, b=2, c=b) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(1, c=4) }} {{ m(b=5, a=6) }} {{ m() }}",
    "macro scope": "{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 5 %}{{ x }}{% endmacro %}{{ m() }}{% set x = 2 %}{{ m() }}{{ x }}",
    "macro recursion": "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(5) }}",
    "macro in loop": "{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "macro text": "{% macro m(x) %} a {{ x }} {% endmacro %}[{{ m(1)|trim }}][{{ m(2) ~ 'z' }}]{% set y = m(3) %}{{ y|length }}",
    "macro wrong": "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "macro wrong name": "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}",
    "macro loops": "{% macro m(x) %}{% for i in x %}{{ i }}{{ '-' if not loop.last }}{% endfor %}{% endmacro %}{{ m([1,2]) }}{% for j in l %}{{ m([j]) }}{% endfor %}",
    "lists change": "{% set a = [1] %}{% set b = a %}{{ a.append(2) }}{{ b }}{% set _ = b.pop(0) %}{{ a }}{{ a.extend([7]) }}{{ a.insert(0, 9) }}{{ a }}{{ a.index(7) }}{{ a.count(9) }}",
    "dicts change": "{% set a = {'x': 1, 'y': 2} %}{{ a.pop('x') }}{{ a }}{{ a.pop('q', 5) }}{% set _ = a.update({'z': 3}) %}{{ a }}{{ a.setdefault('k', 8) }}{{ a }}",
    "dict pop missing": "{% set a = {} %}{{ a.pop('x') }}",
    "many keys": "{% set ns = namespace(d={}) %}{% for i in range(40) %}{% set _ = ns.d.update({'k' ~ i: i}) %}{% endfor %}{{ ns.d.k7 }}{% for i in range(0, 40, 3) %}{% set _ = ns.d.pop('k' ~ i) %}{% endfor %}{{ ns.d }}{{ 'k39' in ns.d }}{{ 'k1' in ns.d }}",
    "cycle": "{% for i in range(5) %}{{ loop.cycle('a', 'b') }}{% endfor %}", "changed": "{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{% endfor %}",
    "undefined call": "{{ nope() }}", "undefined item": "{{ nope['x'] }}", "undefined math": "{{ nope + 1 }}",
    "undefined text": "{{ 'a' ~ nope }}", "divide": "{{ 1 // 0 }}", "open": "{% if t %}", "closed": "{% endif %}",
    "bad tag": "{% nope %}", "bad end": "{{ 1", "bad sign": "{{ 1 $ 2 }}", "bad string": "{{ 'a }}", "two values": "{{ 1 2 }}",
    "bad filter": "{{ 1|nope }}", "bad test": "{{ 1 is nope }}", "break outside": "{% break %}", "empty output": "{{ }}",
    "keyword": "{{ range(3, x=1) }}", "positional after": "{{ dict(a=1, 2) }}",
    "brackets in tag": "{{ {'a': {'b': 1}} }}{{ {'a': {}}.a }}", "close in string": "{{ '}}' }}{% set x = '%}' %}{{ x }}",
    "deep": "{{ " + "(" * 60 + "1" + ")" * 60 + " }}", "long sum": "{{ " + " + ".join(["1"] * 200) + " }}",
    "ternary chain": "{{ 'a' if n == 1 else 'b' if n == 7 else 'c' }}", "set ternary": "{% set x = 'a' if t else 'b' %}{{ x }}",
    "in loop": "{% for m in people if m.age == 30 %}{{ m.name }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "slice loop": "{% for x in l[1:] %}{{ x }}{% endfor %}{% for x in l[::-1] %}{{ x }}{% endfor %}{% for i in range(l|length - 1, -1, -1) %}{{ l[i] }}{% endfor %}",
}


def snippets():
    for line in EXPRESSIONS.splitlines():
        for e in line.split(" ; "):
            yield e, "{{ " + e.strip() + " }}"
    yield from STATEMENTS.items()


# ---- compared -------------------------------------------------------------------------------

def compare(library, name, source, variables):
    want = wanted(source, variables)
    got, error = library.render(source, variables)
    if isinstance(want, Exception):
        if "generator" in str(want):  # a list of ours is one everywhere
            return None
        return None if error else f"{name}: Jinja fails ({type(want).__name__}: {want}), and we write {got[-80:]!r}"
    if error:
        return f"{name}: {error.strip()}"
    if got == want:
        return None
    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    return f"{name}: at {at}: {got[max(0, at - 30):at + 40]!r} instead of {want[max(0, at - 30):at + 40]!r}"


def main():
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    library, wrong, count = Ours(), [], 0
    for name, source in snippets():
        if part in name:
            count += 1
            wrong.append(compare(library, name, source, VALUES))
    for path in sorted(FOUND.glob("*.jinja")):
        source = path.read_bytes().decode()
        for what, variables in contexts() if part in path.name else ():
            count += 1
            wrong.append(compare(library, f"{path.name}, {what}", source, variables))
    wrong = [w for w in wrong if w]
    for line in wrong:
        print("template_test:", line)
    if not FOUND.is_dir():
        print("template_test: tools/get-templates gets published templates")
    print(f"template_test: {count} renderings, {len(wrong)} failures")
    return 1 if wrong or not count else 0


sys.exit(main())
