//! Tables of schemas that providers refuse, and any that a server may send.

use serde_json::{Map, Value, json};

use super::{ANTHROPIC, COMPATIBLE, GEMINI, OPENAI, SchemaRules, legalize, restore_keys};

const ALL: [(&str, &SchemaRules); 4] =
    [("openai", &OPENAI), ("compatible", &COMPATIBLE), ("anthropic", &ANTHROPIC), ("gemini", &GEMINI)];

/// The schema of one property, made legal.
fn property(schema: &Value, rules: &SchemaRules) -> Value {
    let whole = json!({"type": "object", "properties": {"p": schema}, "$defs": {
        "leaf": {"type": "string", "description": "a leaf"},
        "tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}},
        "a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}, "all": true,
    }});
    let mut legal = legalize(&whole, rules).value;
    assert!(legal.get("$defs").is_none());
    legal["properties"]["p"].take()
}

fn check(rules: &SchemaRules, cases: &[(Value, Value)]) {
    for (given, expected) in cases {
        assert_eq!(property(given, rules), *expected, "{given}");
    }
}

fn check_all(cases: &[(Value, Value)]) {
    ALL.iter().for_each(|(_, rules)| check(rules, cases));
}

#[test]
fn legal_schemas_stay_as_they_are() {
    let whole = json!({"type": "object", "properties": {
        "a": {"type": "string", "description": "d", "enum": ["x", "y"], "default": "x"},
        "b": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "integer", "minimum": 1}}, "required": ["c"]}},
        "d": {"anyOf": [{"type": "string"}, {"type": "number"}]},
        "e": {"type": "object", "additionalProperties": {"type": "boolean"}},
    }, "required": ["a"], "additionalProperties": false});
    for (name, rules) in ALL {
        let legal = legalize(&whole, rules);
        assert_eq!((legal.value.to_string(), legal.keys.len()), (whole.to_string(), 0), "{name}");
    }
}

#[test]
fn arrays_have_items() {
    let any = json!({"type": "array", "items": {}});
    for rules in [&OPENAI, &ANTHROPIC] {
        check(
            rules,
            &[
                (json!({"type": "array"}), any.clone()),
                (json!({"type": "array", "items": true}), any.clone()),
                (json!({"type": "array", "items": null}), any.clone()),
                (json!({"type": "array", "items": {"type": "array"}}), json!({"type": "array", "items": any})),
                (json!({"type": ["array", "null"]}), json!({"type": ["array", "null"], "items": {}})),
                (json!({"anyOf": [{"type": "array"}, {"type": "null"}]}), json!({"anyOf": [any, {"type": "null"}]})),
                (
                    json!({"type": "object", "additionalProperties": {"type": "array"}}),
                    json!({"type": "object", "additionalProperties": any}),
                ),
                (
                    json!({"type": "array", "items": [{"type": "string"}, {"type": "array"}]}),
                    json!({"type": "array", "prefixItems": [{"type": "string"}, any], "items": {}}),
                ),
                (json!({"not": {"type": "array"}}), json!({"not": any})),
            ],
        );
    }
}

#[test]
fn references_end() {
    check_all(&[
        (json!({"$ref": "#/$defs/leaf"}), json!({"type": "string", "description": "a leaf"})),
        (json!({"$ref": "#/$defs/leaf", "description": "mine"}), json!({"type": "string", "description": "mine"})),
        (json!({"$ref": "#/$defs/Nope"}), json!({})),
        (json!({"$ref": "other.json#/x", "type": "string"}), json!({"type": "string"})),
        (json!({"$ref": "#/$defs/a"}), json!({})),
        (json!({"$ref": "#/$defs/all"}), json!({})),
        (json!({"$ref": "#/properties/p"}), json!({})),
        (json!({"$ref": "#/%24defs/leaf"}), json!({"type": "string", "description": "a leaf"})),
        (json!({"$ref": "#/$defs/tree"}), json!({"type": "object", "properties": {"next": {"type": "object"}}})),
    ]);
    let keeps_name = json!({"type": "object", "properties": {"$ref": {"type": "string"}}});
    check(&OPENAI, &[(keeps_name.clone(), keeps_name)]);
    // Each level doubles.
    let mut defs = Map::new();
    for n in 0..30 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        defs.insert(format!("d{n}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
    }
    let whole = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs});
    for (name, rules) in ALL {
        let text = legalize(&whole, rules).value.to_string();
        assert!(text.len() < 100_000 && text.contains("\"b\""), "{name}: {}", text.len());
    }
}

#[test]
fn the_top_is_an_object() {
    let bare = json!({"type": "object", "properties": {}});
    let either = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let both =
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b"]});
    let (a, b) = (
        json!({"properties": {"a": {"type": "string"}}}),
        json!({"properties": {"b": {"type": "string"}}, "required": ["b"]}),
    );
    for (given, expected) in [
        (json!(true), &bare),
        (json!(null), &bare),
        (json!([1]), &bare),
        (json!({}), &bare),
        (json!({"type": ["object", "null"], "properties": null, "$schema": "x", "$id": "y"}), &bare),
        (json!({"type": "object", "anyOf": [], "enum": [], "not": {}, "const": 1}), &bare),
        (json!({"oneOf": [a, b]}), &either),
        (
            json!({"anyOf": [b, b]}),
            &json!({"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}),
        ),
        (json!({"allOf": [a, b]}), &both),
        (json!({"$ref": "#/$defs/x", "$defs": {"x": {"allOf": [a, {"$ref": "#/$defs/y"}]}, "y": b}}), &both),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            &json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        ),
    ] {
        for (name, rules) in ALL {
            let mut legal = legalize(&given, rules).value;
            legal.as_object_mut().unwrap().entry("properties").or_insert_with(|| json!({}));
            assert_eq!(legal, *expected, "{name}: {given}");
        }
    }
    let differing =
        json!({"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"type": "number"}}}]});
    let joined = json!({"anyOf": [{"type": "string"}, {"type": "number"}]});
    assert_eq!(legalize(&differing, &OPENAI).value["properties"]["a"], joined);
}

#[test]
fn older_and_wrong_forms_are_put_right() {
    check_all(&[
        (json!("string"), json!({"type": "string"})),
        (json!(null), json!({})),
        (json!({"type": "STRING", "description": null}), json!({"type": "string"})),
        (json!({"type": "any"}), json!({})),
        (json!({"type": ["string", "string", "foo"]}), json!({"type": "string"})),
        (json!({"type": "integer", "minimum": "1", "default": null}), json!({"type": "integer", "default": null})),
        (json!({"type": "string", "enum": [], "title": 5}), json!({"type": "string"})),
        (json!({"type": "string", "enum": ["a", "a", "b"]}), json!({"type": "string", "enum": ["a", "b"]})),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "required": true}, "b": false}, "required": ["z", "b"]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        ),
        (
            json!({"type": "object", "properties": {"a": {}}, "required": null}),
            json!({"type": "object", "properties": {"a": {}}}),
        ),
        (json!({"type": "object", "properties": []}), json!({"type": "object"})),
        (json!({"type": "string", "minLength": -1, "maxLength": 2.0}), json!({"type": "string", "maxLength": 2})),
        (json!({"anyOf": null, "type": "string"}), json!({"type": "string"})),
    ]);
    let exclusive = json!({"type": "number", "minimum": 1, "exclusiveMinimum": true, "exclusiveMaximum": false});
    check(&OPENAI, &[(exclusive.clone(), json!({"type": "number", "exclusiveMinimum": 1}))]);
    check(&GEMINI, &[(exclusive, json!({"type": "number", "minimum": 1}))]);
}

#[test]
fn gemini_has_its_own_words() {
    let (text, number) = (json!({"type": "string"}), json!({"type": "number"}));
    check(
        &GEMINI,
        &[
            (json!({"const": "a"}), json!({"type": "string", "enum": ["a"]})),
            (json!({"const": 5}), json!({"type": "integer", "description": "Always 5."})),
            (
                json!({"type": "integer", "enum": [1, 2], "description": "d."}),
                json!({"type": "integer", "description": "d. One of 1, 2."}),
            ),
            (json!({"enum": ["", "a", null]}), json!({"type": ["string", "null"], "enum": ["a"]})),
            (json!({"type": "string", "format": "uri"}), text.clone()),
            (json!({"type": "string", "format": "date-time"}), json!({"type": "string", "format": "date-time"})),
            (
                json!({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9}),
                json!({"type": "integer", "minimum": 1, "maximum": 8}),
            ),
            (json!({"type": "string", "contentEncoding": "base64", "x-new": 1, "examples": ["a"]}), text.clone()),
            (
                json!({"type": "object", "patternProperties": {"a": {}}, "propertyNames": text}),
                json!({"type": "object"}),
            ),
            (
                json!({"properties": {"a": {}}, "required": ["a"]}),
                json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
            ),
            (json!({"type": "object", "required": ["a"]}), json!({"type": "object"})),
            (
                json!({"type": ["string", "number"], "maxLength": 3, "description": "d"}),
                json!({"anyOf": [{"type": "string", "maxLength": 3, "description": "d"}, {"type": "number", "description": "d"}]}),
            ),
            (json!({"type": ["string", "null"]}), json!({"type": ["string", "null"]})),
            (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
            (
                json!({"anyOf": [text, {"type": "null"}], "description": "d"}),
                json!({"type": ["string", "null"], "description": "d"}),
            ),
            (json!({"oneOf": [text, number], "type": "string"}), json!({"anyOf": [text, number]})),
            (json!({"allOf": [{"type": "string"}, {"maxLength": 3}]}), json!({"type": "string", "maxLength": 3})),
            (json!({"anyOf": [text]}), text.clone()),
        ],
    );
}

#[test]
fn keys_are_renamed_and_named_back() {
    let long = "k".repeat(80);
    let given = json!({"type": "object", "properties": {
        "StartTime<": {"type": "string"}, "StartTime>": {"type": "string"}, "StartTime_": {"type": "string"},
        "标题": {"type": "array", "items": {"type": "object", "properties": {"Due Date": {"type": "string"}}, "required": ["Due Date"]}},
        long.clone(): {"type": "string", "title": "Long"}, "": {},
    }, "required": ["StartTime<"]});
    let legal = legalize(&given, &ANTHROPIC);
    let names = |it: &Value| it["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let top = names(&legal.value);
    assert_eq!(top.len(), 6);
    assert_eq!((top[2].as_str(), &legal.value["required"][0]), ("StartTime_", &json!(top[0])));
    let list = &legal.value["properties"][&top[3]];
    let inner = names(&list["items"]);
    assert_eq!((&list["items"]["required"][0], &list["title"]), (&json!(inner[0]), &json!("标题")));
    assert!(top.iter().chain(&inner).all(|it| super::legal_key(it) == *it), "{top:?} {inner:?}");
    let mut args = json!({&top[0]: "1", &top[1]: {"x": [1]}, &top[2]: "3", &top[3]: [{&inner[0]: "2", "free": 1}], &top[4]: "4", "StartTime<": 1});
    args.as_object_mut().unwrap().shift_remove("StartTime<");
    restore_keys(&mut args, &legal.keys);
    let own = json!({"StartTime<": "1", "StartTime>": {"x": [1]}, "StartTime_": "3", "标题": [{"Due Date": "2", "free": 1}], long: "4"});
    assert_eq!(args, own);
    // What a model writes as the server does is right as well.
    let mut same = own.clone();
    restore_keys(&mut same, &legal.keys);
    assert_eq!(same, own);
}

/// What the providers' own checks refuse, as far as it is known.
fn faults(schema: &Value, gemini: bool, plain: bool, out: &mut Vec<String>) {
    let Some(map) = schema.as_object() else {
        if schema.is_boolean() && !gemini {
            return;
        }
        return out.push(format!("no schema: {schema}"));
    };
    for name in ["$ref", "$id", "$schema", "$dynamicRef"] {
        if map.contains_key(name) {
            out.push(name.to_owned());
        }
    }
    if plain && super::has_type(map, "array") && !map.get("items").is_some_and(Value::is_object) {
        out.push("items".to_owned());
    }
    if plain && (map.contains_key("oneOf") || map.contains_key("allOf")) {
        out.push("combination".to_owned());
    }
    if gemini {
        if map.contains_key("anyOf") && map.len() > 1 {
            out.push(format!("beside anyOf: {schema}"));
        }
        if map
            .get("enum")
            .is_some_and(|it| !it.as_array().unwrap().iter().all(|it| it.as_str().is_some_and(|it| !it.is_empty())))
        {
            out.push("enum".to_owned());
        }
        let known = map.get("properties").and_then(Value::as_object);
        for it in map.get("required").into_iter().flat_map(|it| it.as_array().unwrap()) {
            if !known.is_some_and(|known| known.contains_key(it.as_str().unwrap())) {
                out.push(format!("required {it}"));
            }
        }
        for it in map.keys() {
            if ![
                "type",
                "format",
                "title",
                "description",
                "default",
                "enum",
                "items",
                "prefixItems",
                "minItems",
                "maxItems",
                "minLength",
                "maxLength",
                "pattern",
                "minimum",
                "maximum",
                "anyOf",
                "properties",
                "additionalProperties",
                "required",
                "propertyOrdering",
            ]
            .contains(&it.as_str())
            {
                out.push(it.clone());
            }
        }
    }
    for name in super::SINGLE {
        if let Some(it) = map.get(*name).filter(|it| !it.is_boolean() || *name == "items") {
            faults(it, gemini, plain, out);
        }
    }
    super::LISTS
        .iter()
        .filter_map(|it| map.get(*it))
        .flat_map(|it| it.as_array().unwrap())
        .for_each(|it| faults(it, gemini, plain, out));
    super::NAMED
        .iter()
        .filter_map(|it| map.get(*it))
        .flat_map(|it| it.as_object().unwrap().values())
        .for_each(|it| faults(it, gemini, plain, out));
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    /// Mostly a schema, at times something else.
    fn schema(&mut self, depth: usize) -> Value {
        const ODD: &[&str] = &[
            "null",
            "true",
            "false",
            "5",
            "-1.5",
            "\"string\"",
            "\"\"",
            "[]",
            "{}",
            "[\"a\",1,null]",
            "\"#/$defs/a\"",
            "\"#/$defs/none\"",
            "\"#\"",
            "[\"string\",\"null\",\"array\"]",
            "\"array\"",
            "\"object\"",
            "[{}]",
            "{\"a\":{}}",
        ];
        if depth > 4 || self.roll(7) == 0 {
            return serde_json::from_str(ODD[self.roll(ODD.len())]).unwrap();
        }
        const WORDS: &[&str] = &[
            "type",
            "enum",
            "const",
            "required",
            "minimum",
            "exclusiveMinimum",
            "maxItems",
            "format",
            "pattern",
            "title",
            "description",
            "default",
            "$ref",
            "$schema",
            "nullable",
            "examples",
            "dependentRequired",
            "uniqueItems",
            "x-own",
            "dependencies",
            "items",
            "additionalProperties",
            "not",
            "if",
            "then",
            "anyOf",
            "oneOf",
            "allOf",
            "prefixItems",
            "properties",
            "patternProperties",
            "$defs",
            "additionalItems",
            "multipleOf",
        ];
        let mut res = Map::new();
        for _ in 0..self.roll(5) + 1 {
            let name = WORDS[self.roll(WORDS.len())];
            let value = match (name, self.roll(6)) {
                (_, 0) => serde_json::from_str(ODD[self.roll(ODD.len())]).unwrap(),
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", _) => {
                    (0..self.roll(3) + 1).map(|_| self.schema(depth + 1)).collect()
                }
                ("properties" | "$defs" | "patternProperties", _) => {
                    let keys = ["a", "b c", "日", "d<", "d>"];
                    Value::Object(
                        (0..self.roll(3) + 1)
                            .map(|_| (keys[self.roll(5)].to_owned(), self.schema(depth + 1)))
                            .collect(),
                    )
                }
                ("type", _) => {
                    ["string", "array", "object", "integer", "number", "boolean", "null"][self.roll(7)].into()
                }
                ("$ref", _) => ["#/$defs/a", "#/$defs/d<", "#/properties/a", "#", "x"][self.roll(5)].into(),
                ("required", _) => json!(["a", "b c", "zz"]),
                ("enum", _) => json!(["a", 1, "", null, true]),
                (name, _) if super::SINGLE.contains(&name) => self.schema(depth + 1),
                _ => serde_json::from_str(ODD[self.roll(ODD.len())]).unwrap(),
            };
            res.insert(name.to_owned(), value);
        }
        Value::Object(res)
    }
}

#[test]
fn whatever_a_server_says_becomes_legal() {
    let meta = jsonschema::draft202012::meta::validator();
    for seed in 0..1_200 {
        let given = Dice(seed).schema(0);
        for (name, rules) in ALL {
            let legal = legalize(&given, rules);
            let top = legal.value.as_object().unwrap();
            let mut found = Vec::new();
            faults(&legal.value, rules.is_gemini, rules.is_plain, &mut found);
            assert!(found.is_empty(), "{seed} {name}: {found:?}\n{given}\n{}", legal.value);
            assert!(
                top["type"] == "object" && (rules.is_gemini || top["properties"].is_object()),
                "{seed} {name}: {}",
                legal.value
            );
            for it in ["anyOf", "oneOf", "allOf", "enum", "not"] {
                assert!(!top.contains_key(it), "{seed} {name}: {it}");
            }
            if let Err(it) = meta.validate(&legal.value) {
                panic!("{seed} {name}: {it} at {}\n{given}\n{}", it.instance_path(), legal.value);
            }
            assert_eq!(legalize(&legal.value, rules).value, legal.value, "{seed} {name}: not settled\n{given}");
        }
    }
}
