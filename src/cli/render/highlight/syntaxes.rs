//! The table of languages that are coloured. A language that is not here stays plain; a row more is all it takes.

use super::{
    code::has_word,
    syntax::{
        C_LIKE, CHAR, CODE, DOUBLE, HASH, SINGLE, Syntax, SyntaxForm,
        SyntaxTrait::{
            Capitals, ColonKeys, Decorators, EqualKeys, HashWords, Heredocs, IgnoresCase, Jsx, LineKeywords,
            NestedComments, Preprocessor, QuotedKeys, Regexes, Sections,
        },
        doc, format, long, raw, string, template,
    },
};

/// `language` is a fence's name of a language, a file name or an extension.
pub fn find_syntax(language: &str) -> Option<&'static Syntax> {
    let file = language.rsplit(['/', '\\']).next().unwrap_or(language).to_lowercase();
    let extension = file.rsplit('.').next().unwrap_or(&file);
    [file.as_str(), extension].into_iter().find_map(|name| SYNTAXES.iter().find(|it| has_word(it.names, name)))
}

const SCRIPT: &str = "async await break case catch class const continue debugger default delete do else export extends \
    finally for from function get if import in instanceof let new of return set static super switch this throw try \
    typeof var void while with yield as";
const TYPED_SCRIPT: &str = "async await break case catch class const continue debugger default delete do else export \
    extends finally for from function get if import in instanceof let new of return set static super switch this throw \
    try typeof var void while with yield as abstract asserts declare enum implements infer interface is keyof module \
    namespace override private protected public readonly satisfies type unique";
const SCRIPT_TYPES: &str = "any bigint boolean never number object string symbol unknown";
const C_WORDS: &str = "break case const continue default do else enum extern for goto if inline register return sizeof \
    static struct switch typedef union volatile while";
const C_TYPES: &str = "bool char double float int int16_t int32_t int64_t int8_t long short signed size_t ssize_t \
    uint16_t uint32_t uint64_t uint8_t unsigned void wchar_t";
const SHELL: Syntax = Syntax {
    strings: &[template("\"", "\"", "$("), raw("'", "'")],
    keywords: "case do done elif else end esac export fi for function if in local readonly return select set then until \
        while",
    constants: "",
    word_chars: "-",
    traits: &[Heredocs],
    ..HASH
};
const JAVASCRIPT: Syntax = Syntax {
    strings: &[template("`", "`", "${"), DOUBLE, SINGLE],
    keywords: SCRIPT,
    constants: "true false null undefined NaN Infinity",
    word_chars: "$",
    traits: &[Capitals, Decorators, Jsx, Regexes],
    ..C_LIKE
};
const MARKUP: Syntax = Syntax { form: SyntaxForm::Markup, block_comments: &[("<!--", "-->")], ..CODE };
const CSS: Syntax = Syntax {
    block_comments: &[("/*", "*/")],
    constants: "",
    word_chars: "-",
    traits: &[ColonKeys, Decorators, HashWords],
    ..CODE
};

/// The usual ones first.
pub const SYNTAXES: &[Syntax] = &[
    Syntax {
        names: "rust rs",
        strings: &[
            raw("r##\"", "\"##"),
            raw("br#\"", "\"#"),
            raw("r#\"", "\"#"),
            raw("br\"", "\""),
            raw("r\"", "\""),
            long("\"", "\""),
            CHAR,
        ],
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop \
            macro_rules match mod move mut pub ref return self static struct super trait type union unsafe use where \
            while yield",
        types: "bool char f32 f64 i128 i16 i32 i64 i8 isize str u128 u16 u32 u64 u8 usize",
        constants: "true false",
        traits: &[Capitals, NestedComments],
        ..C_LIKE
    },
    Syntax {
        names: "python py python3 py3 pyi pyw starlark bzl bazel sconstruct",
        strings: &[
            doc("\"\"\""),
            doc("'''"),
            template("f\"\"\"", "\"\"\"", "{"),
            template("f'''", "'''", "{"),
            format("f\"", "\""),
            format("f'", "'"),
            DOUBLE,
            SINGLE,
        ],
        keywords: "and as assert async await break case class continue def del elif else except finally for from \
            global if import in is lambda match nonlocal not or pass raise return try while with yield",
        types: "bool bytes dict float frozenset int list object set str tuple",
        constants: "True False None",
        traits: &[Capitals, Decorators],
        ..HASH
    },
    Syntax { names: "javascript js jsx mjs cjs node", ..JAVASCRIPT },
    Syntax {
        names: "typescript ts mts cts",
        keywords: TYPED_SCRIPT,
        types: SCRIPT_TYPES,
        traits: &[Capitals, Decorators, Regexes],
        ..JAVASCRIPT
    },
    Syntax { names: "tsx", keywords: TYPED_SCRIPT, types: SCRIPT_TYPES, ..JAVASCRIPT },
    Syntax {
        names: "bash sh shell zsh ksh ash dash fish .bashrc .bash_profile .profile .zshrc envrc pkgbuild",
        ..SHELL
    },
    // What is printed stands among the commands: a lone quote ends with its line.
    Syntax { names: "console shell-session sh-session terminal", strings: &[DOUBLE, SINGLE], ..SHELL },
    Syntax {
        names: "json jsonc json5 jsonl ndjson geojson webmanifest ipynb",
        strings: &[DOUBLE],
        traits: &[QuotedKeys],
        ..C_LIKE
    },
    Syntax { names: "yaml yml", form: SyntaxForm::Yaml, ..HASH },
    Syntax {
        names: "toml cargo.lock poetry.lock uv.lock",
        strings: &[long("\"\"\"", "\"\"\""), raw("'''", "'''"), DOUBLE, SINGLE],
        word_chars: "-.",
        traits: &[EqualKeys, Sections],
        ..HASH
    },
    Syntax {
        names: "ini cfg conf properties dotenv env .env editorconfig .editorconfig gitconfig .gitconfig service desktop",
        line_comments: &["#", ";"],
        strings: &[DOUBLE],
        constants: "true false yes no on off",
        word_chars: "-.",
        traits: &[EqualKeys, Sections],
        ..HASH
    },
    Syntax {
        names: "go golang",
        strings: &[raw("`", "`"), DOUBLE, SINGLE],
        keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface \
            map package range return select struct switch type var",
        types: "any bool byte complex128 complex64 error float32 float64 int int16 int32 int64 int8 rune string uint \
            uint16 uint32 uint64 uint8 uintptr",
        constants: "true false nil iota",
        traits: &[],
        ..C_LIKE
    },
    Syntax {
        names: "c h objc m mm",
        keywords: C_WORDS,
        types: C_TYPES,
        constants: "true false NULL nullptr",
        traits: &[Capitals, Preprocessor],
        ..C_LIKE
    },
    Syntax {
        names: "c++ cpp cc cxx hpp hh hxx ino cuda cu",
        strings: &[raw("R\"(", ")\""), DOUBLE, SINGLE],
        keywords: "alignas auto break case catch class co_await co_return co_yield concept const consteval constexpr \
            constinit continue decltype default delete do else enum explicit export extern final for friend goto if \
            inline mutable namespace new noexcept operator override private protected public requires return sizeof \
            static static_assert static_cast struct switch template this throw try typedef typename union using \
            virtual volatile while",
        types: C_TYPES,
        constants: "true false NULL nullptr",
        traits: &[Capitals, Preprocessor],
        ..C_LIKE
    },
    Syntax {
        names: "c# csharp cs",
        strings: &[long("\"\"\"", "\"\"\""), raw("@\"", "\""), format("$\"", "\""), DOUBLE, SINGLE],
        keywords: "abstract as async await base break case catch checked class const continue default delegate do else \
            enum event explicit extern finally fixed for foreach get goto if implicit in init interface internal is \
            lock namespace new operator out override params partial private protected public readonly record ref \
            return sealed set sizeof static struct switch this throw try typeof unsafe using var virtual where while \
            with yield",
        types: "bool byte char decimal double dynamic float int long object sbyte short string uint ulong ushort void",
        traits: &[Capitals, Preprocessor],
        ..C_LIKE
    },
    Syntax {
        names: "java",
        strings: &[long("\"\"\"", "\"\"\""), DOUBLE, SINGLE],
        keywords: "abstract assert break case catch class continue default do else enum extends final finally for if \
            implements import instanceof interface native new package permits private protected public record return \
            sealed static super switch synchronized this throw throws transient try var volatile while yield",
        types: "boolean byte char double float int long short void",
        traits: &[Capitals, Decorators],
        ..C_LIKE
    },
    Syntax {
        names: "kotlin kt kts",
        strings: &[template("\"\"\"", "\"\"\"", "${"), template("\"", "\"", "${"), SINGLE],
        keywords: "abstract as break by catch class companion const constructor continue crossinline data do else enum \
            external final finally for fun if import in infix init inline inner interface internal is lateinit object \
            open operator out override package private protected public reified return sealed super suspend this \
            throw try typealias val var vararg when where while",
        traits: &[Capitals, Decorators, NestedComments],
        ..C_LIKE
    },
    Syntax {
        names: "swift",
        strings: &[long("\"\"\"", "\"\"\""), DOUBLE],
        keywords: "actor any as associatedtype async await break case catch class continue convenience default defer \
            deinit do dynamic else enum extension fallthrough final for func guard if import in indirect init inout \
            internal is lazy let mutating open operator override private protocol public repeat required rethrows \
            return self some static struct subscript super switch throw throws try typealias unowned var weak where \
            while",
        constants: "true false nil",
        traits: &[Capitals, Decorators, NestedComments],
        ..C_LIKE
    },
    Syntax {
        names: "scala sc sbt",
        strings: &[long("\"\"\"", "\"\"\""), DOUBLE, CHAR],
        keywords: "abstract case catch class def do else enum extends extension final finally for given if implicit \
            import lazy match new object override package private protected return sealed super then this throw trait \
            try type using val var while with yield",
        traits: &[Capitals, Decorators, NestedComments],
        ..C_LIKE
    },
    Syntax {
        names: "groovy gradle jenkinsfile",
        strings: &[long("\"\"\"", "\"\"\""), long("'''", "'''"), DOUBLE, SINGLE],
        keywords: "as assert break case catch class continue def default do else enum extends finally for if implements \
            import in instanceof interface new package private protected public return static super switch this throw \
            throws trait try var while",
        types: "boolean byte char double float int long short void",
        traits: &[Capitals, Decorators],
        ..C_LIKE
    },
    Syntax {
        names: "dart",
        strings: &[
            template("'''", "'''", "${"),
            template("\"\"\"", "\"\"\"", "${"),
            template("'", "'", "${"),
            template("\"", "\"", "${"),
        ],
        keywords: "abstract as assert async await base break case catch class const continue default do else enum \
            export extends extension external factory final finally for get if implements import in interface is late \
            library mixin new on operator part required return sealed set static super switch sync this throw try \
            typedef var when while with yield",
        types: "bool double dynamic int num void",
        traits: &[Capitals, Decorators],
        ..C_LIKE
    },
    Syntax {
        names: "php phtml",
        line_comments: &["//", "# "],
        strings: &[long("\"", "\""), long("'", "'")],
        keywords: "abstract and array as break case catch class clone const continue declare default do echo else \
            elseif enum extends final finally fn for foreach function global if implements include instanceof insteadof \
            interface isset list match namespace new or print private protected public readonly require require_once \
            return static switch throw trait try unset use var while xor yield",
        types: "bool callable float int iterable mixed never object string void",
        word_chars: "$",
        traits: &[Capitals, Heredocs],
        ..C_LIKE
    },
    Syntax {
        names: "ruby rb gemfile rakefile gemspec podfile vagrantfile",
        strings: &[template("\"", "\"", "#{"), long("'", "'"), template("`", "`", "#{")],
        keywords: "alias and begin break case class def defined? do else elsif end ensure for if in include module next \
            not or private protected public raise redo require require_relative rescue retry return self super then \
            undef unless until when while yield",
        constants: "true false nil",
        word_chars: "?!",
        traits: &[Capitals, Heredocs],
        ..HASH
    },
    Syntax {
        names: "perl pl pm",
        keywords: "and cmp continue do else elsif eq eval for foreach ge gt if last le lt local my ne next no not or our \
            package print redo require return sub unless until use while xor",
        traits: &[Heredocs],
        ..HASH
    },
    Syntax {
        names: "lua luau",
        line_comments: &["--"],
        block_comments: &[("--[[", "]]")],
        strings: &[raw("[[", "]]"), DOUBLE, SINGLE],
        keywords: "and break do else elseif end for function goto if in local not or repeat return then until while",
        constants: "true false nil self",
        ..CODE
    },
    Syntax {
        names: "r rscript",
        keywords: "break else for function if in next repeat return while",
        constants: "TRUE FALSE NULL NA NaN Inf",
        word_chars: ".",
        ..HASH
    },
    Syntax {
        names: "julia jl",
        block_comments: &[("#=", "=#")],
        strings: &[long("\"\"\"", "\"\"\""), DOUBLE, CHAR],
        keywords: "abstract baremodule begin break catch const continue do else elseif end export finally for function \
            global if import in let local macro module mutable primitive quote return struct try using where while",
        constants: "true false nothing missing",
        word_chars: "!",
        traits: &[Capitals, Decorators],
        ..HASH
    },
    Syntax {
        names: "haskell hs",
        line_comments: &["--"],
        block_comments: &[("{-", "-}")],
        strings: &[DOUBLE, CHAR],
        keywords: "as case class data default deriving do else family forall foreign hiding if import in infix infixl \
            infixr instance let module newtype of qualified then type where",
        constants: "",
        word_chars: "'",
        traits: &[Capitals, NestedComments],
        ..CODE
    },
    Syntax {
        names: "ocaml ml mli f# fsharp fs fsx",
        line_comments: &["//"],
        block_comments: &[("(*", "*)")],
        strings: &[long("\"", "\""), CHAR],
        keywords: "and as assert begin class constraint do done downto else end exception external for fun function \
            functor if in include inherit initializer lazy let match member method module mutable namespace new object \
            of open or override private rec sig struct then to try type use val virtual when while with yield",
        types: "bool char float int list option string unit",
        constants: "true false",
        word_chars: "'",
        traits: &[Capitals, NestedComments],
        ..CODE
    },
    Syntax {
        names: "elixir ex exs",
        strings: &[doc("\"\"\""), template("\"", "\"", "#{"), SINGLE],
        keywords: "after alias and case catch cond def defimpl defmacro defmodule defp defprotocol defstruct do else \
            end fn for if import in not or quote raise receive require rescue try unless unquote use when with",
        constants: "true false nil",
        word_chars: "?!",
        traits: &[Capitals, Decorators],
        ..HASH
    },
    Syntax {
        names: "clojure clj cljs cljc edn lisp el elisp scheme scm racket rkt",
        line_comments: &[";"],
        strings: &[long("\"", "\"")],
        keywords: "begin case cond def define defmacro defn defn- defun do else fn if lambda let let* letrec loop ns \
            progn quote recur require set! setq unless when",
        constants: "true false nil t",
        word_chars: "-!?*<>=/+",
        ..CODE
    },
    Syntax {
        names: "zig zon",
        keywords: "align and anytype asm async await break catch comptime const continue defer else enum errdefer error \
            export extern fn for if inline noalias opaque or orelse packed pub resume return struct suspend switch test \
            threadlocal try union unreachable usingnamespace var volatile while",
        types: "bool f16 f32 f64 i16 i32 i64 i8 isize type u16 u32 u64 u8 usize void",
        constants: "true false null undefined",
        traits: &[Capitals, Decorators],
        ..C_LIKE
    },
    Syntax {
        names: "powershell ps1 psm1 pwsh",
        block_comments: &[("<#", "#>")],
        strings: &[long("@\"", "\"@"), raw("@'", "'@"), template("\"", "\"", "$("), raw("'", "'")],
        keywords: "begin break catch class continue do else elseif end enum exit filter finally for foreach function if \
            in param process return switch throw trap try until using while",
        word_chars: "-",
        traits: &[IgnoresCase],
        ..HASH
    },
    Syntax {
        names: "sql mysql postgres postgresql psql plsql sqlite ddl",
        line_comments: &["--"],
        block_comments: &[("/*", "*/")],
        strings: &[raw("'", "'"), DOUBLE, string("`", "`")],
        keywords: "add all alter and as asc begin between by cascade case check column commit conflict constraint create \
            cross database default delete desc distinct do drop else end except exists explain foreign from full \
            function grant group having if in index inner insert intersect into is join key left like limit materialized \
            not nothing offset on or order outer over partition primary procedure recursive references replace returning \
            returns revoke right rollback schema select set table temporary then transaction trigger truncate union \
            unique update using values view when where with",
        types: "bigint bigserial blob boolean bytea char date decimal double float int integer interval json jsonb \
            numeric real serial smallint text time timestamp timestamptz uuid varchar",
        constants: "true false null",
        traits: &[IgnoresCase],
        ..CODE
    },
    Syntax { names: "html htm xhtml vue svelte astro handlebars hbs", ..MARKUP },
    Syntax { names: "xml svg xsd xsl xslt plist csproj rss atom xaml pom.xml", ..MARKUP },
    Syntax { names: "css", ..CSS },
    Syntax { names: "scss sass less", line_comments: &["//"], word_chars: "-$", ..CSS },
    Syntax {
        names: "dockerfile containerfile docker",
        keywords: "add arg cmd copy entrypoint env expose from healthcheck label maintainer onbuild run shell stopsignal \
            user volume workdir",
        constants: "",
        word_chars: "-",
        traits: &[IgnoresCase, LineKeywords],
        ..HASH
    },
    Syntax {
        names: "makefile make mk gnumakefile justfile just",
        keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override undefine unexport vpath",
        constants: "",
        word_chars: "-.",
        traits: &[ColonKeys, EqualKeys, LineKeywords],
        ..HASH
    },
    Syntax {
        names: "cmake cmakelists.txt",
        strings: &[long("\"", "\"")],
        keywords: "else elseif endforeach endfunction endif endmacro endwhile foreach function if include macro project \
            return set while",
        constants: "ON OFF TRUE FALSE",
        ..HASH
    },
    Syntax {
        names: "nix",
        line_comments: &["#"],
        block_comments: &[("/*", "*/")],
        strings: &[template("\"", "\"", "${"), template("''", "''", "${")],
        keywords: "assert else if import in inherit let or rec then with",
        constants: "true false null",
        word_chars: "-.",
        traits: &[EqualKeys],
        ..CODE
    },
    Syntax {
        names: "hcl terraform tf tfvars",
        line_comments: &["#", "//"],
        strings: &[template("\"", "\"", "${")],
        keywords: "data else endif for if in locals module output provider resource terraform variable",
        traits: &[EqualKeys, Heredocs],
        ..C_LIKE
    },
    Syntax {
        names: "graphql gql",
        strings: &[doc("\"\"\""), DOUBLE],
        keywords: "directive enum extend fragment implements input interface mutation on query scalar schema \
            subscription type union",
        types: "Boolean Float ID Int String",
        traits: &[Capitals, ColonKeys, Decorators],
        ..HASH
    },
    Syntax {
        names: "protobuf proto",
        keywords: "enum extend import message oneof option optional package repeated required reserved returns rpc \
            service stream syntax",
        types: "bool bytes double fixed32 fixed64 float int32 int64 map sint32 sint64 string uint32 uint64",
        ..C_LIKE
    },
    Syntax { names: "markdown md mdx mkd readme", form: SyntaxForm::Markdown, ..CODE },
    Syntax { names: "diff patch", form: SyntaxForm::Diff, ..CODE },
];
