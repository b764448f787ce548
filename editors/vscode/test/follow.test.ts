// The end of the conversation stays in sight, unless the user scrolled up.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Follow } from "../src/webview/follow";

/** A list of 500 pixels in sight, as a browser has it. */
class List {
  scrollTop = 0;
  scrollHeight = 500;
  readonly clientHeight = 500;
  readonly follow = new Follow();

  /** Something gets its height; the page is told of it afterwards. */
  grow(by: number): void {
    this.scrollHeight += by;
    this.settle();
  }

  settle(): void {
    const place = this.follow.placeAfterChange(this);
    if (place !== undefined) {
      this.scrollTop = place;
    }
  }

  user(by: number): void {
    this.scrollTop = Math.min(Math.max(0, this.scrollTop + by), this.scrollHeight - this.clientHeight);
    this.follow.scrolled(this);
  }

  get below(): number {
    return this.scrollHeight - this.scrollTop - this.clientHeight;
  }
}

test("what is added stays in sight", () => {
  const list = new List();
  for (const height of [40, 700, 20]) {
    list.grow(height);
    assert.equal(list.below, 0);
  }
});

test("a picture that gets its height after it was added stays in sight, also at the next prompt", () => {
  const list = new List();
  list.grow(600);
  // The page tells of its own scrolling when the picture has grown already.
  list.scrollHeight += 300;
  list.follow.scrolled(list);
  list.settle();
  assert.equal(list.below, 0);
  list.grow(120);
  assert.equal(list.below, 0);
});

test("who scrolled up stays there, until they come back or send something", () => {
  const list = new List();
  list.grow(2000);
  list.user(-900);
  list.grow(300);
  assert.equal(list.below, 1200);
  list.user(1190);
  list.grow(300);
  assert.equal(list.below, 0);
  list.user(-900);
  list.follow.goToEnd();
  list.settle();
  assert.equal(list.below, 0);
});

test("earlier items above what is read are no scrolling of the user's", () => {
  const list = new List();
  list.grow(2000);
  list.user(-900);
  list.scrollHeight += 1000;
  list.scrollTop += 1000;
  list.follow.moved(list.scrollTop);
  list.follow.scrolled(list);
  list.grow(100);
  assert.equal(list.below, 1000);
});
