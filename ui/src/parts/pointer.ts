/** Only a pointer that moves means a row: under one that rests, other rows come to lie. */
export const hasMoved = ({ movementX, movementY }: PointerEvent): boolean =>
  movementX !== 0 || movementY !== 0;
