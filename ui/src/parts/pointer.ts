/** Returns true for real pointer movement: scrolling also moves rows under a resting pointer. */
export const hasMoved = ({ movementX, movementY }: PointerEvent): boolean =>
  movementX !== 0 || movementY !== 0;
